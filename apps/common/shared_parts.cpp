#include "common/shared_parts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weir::apps {

void SharedParts::cancel() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (share_) weir_share_cancel(share_->handle());
}

double SharedParts::ratio() const {
  const weir_share_info info = share_->info();
  return info.ideal_ns > 0 ? static_cast<double>(info.makespan_ns) / info.ideal_ns : 1;
}

std::vector<std::pair<std::string, std::string>> SharedParts::describe_with(
    const std::vector<std::string>& shapes) const {
  const weir_share_info info = share_->info();
  const double makespan_ms = static_cast<double>(info.makespan_ns) / 1e6;
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("shared", fmt::format("{}: makespan {:.3f} ms / ideal {:.3f} ms = {:.3f}",
                                          info.chunks, makespan_ms, info.ideal_ns / 1e6, ratio()));
  const auto parts = share_->parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string rank = fabric_ != nullptr ? fmt::format("rank {} ", parts[i].rank) : "";
    const double idle_ms = static_cast<double>(parts[i].idle_ns) / 1e6;
    rows.emplace_back("", fmt::format("{}{}: {} in {} visits{}{}, idle {:.3f} ms ({:.1f} %){}",
                                      rank, parts[i].place, parts[i].items, parts[i].visits,
                                      shapes[i].empty() ? "" : ", ", shapes[i], idle_ms,
                                      makespan_ms > 0 ? 100 * idle_ms / makespan_ms : 0,
                                      parts[i].lost ? ", lost" : ""));
  }
  return rows;
}

std::string chunk_list() {
  using Json = nlohmann::ordered_json;
  std::string text;
  const Json facts = Json::parse(weir::Runtime("null").describe());
  for (const Json& chunks : facts.at("chunks")) {
    text += fmt::format("  {:20} {}\n", chunks.at("name").get<std::string>(),
                        chunks.at("summary").get<std::string>());
  }
  return text;
}

}  // namespace weir::apps
