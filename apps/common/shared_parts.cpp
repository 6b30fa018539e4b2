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

std::string SharedParts::describe_with(const std::vector<std::string>& shapes) const {
  std::string text = fmt::format("{}: makespan / ideal = {:.3f}", share_->info().chunks, ratio());
  const auto parts = share_->parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string rank = fabric_ != nullptr ? fmt::format("rank {} ", parts[i].rank) : "";
    text += fmt::format("; {}{} {} in {} visits{}{}{}", rank, parts[i].place, parts[i].items,
                        parts[i].visits, shapes[i].empty() ? "" : ", ", shapes[i],
                        parts[i].lost ? ", lost" : "");
  }
  return text;
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
