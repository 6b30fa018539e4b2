#include "report/trace_parts.hpp"

#include <algorithm>

namespace weir::cli::report {

std::vector<Arrows::Ends> Arrows::take() const {
  std::vector<Ends> found;
  for (const Ends& ends : ends_) {
    if (ends.first < ends.second && ends.second != kNone) found.push_back(ends);
  }
  return found;
}

std::uint32_t cores_of(std::uint64_t count) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(count, 1, UINT32_MAX));
}

TraceRow row_named(std::string domain, std::string name) {
  std::string owner = name;
  const std::size_t copy = owner.rfind(" (");
  if (copy != std::string::npos && owner.back() == ')') owner.resize(copy);
  const std::size_t core = owner.rfind(" core ");
  if (core != std::string::npos) owner.resize(core);
  return {std::move(domain), std::move(name), std::move(owner)};
}

Kind kind_of(std::string_view category, std::string_view name, const TraceRow& row) {
  if (category == "compute") return Kind::compute;
  if (category != "transfer") return Kind::sync;
  const std::string_view word = name.substr(0, name.find(' '));  // before the name of the buffer
  if (word == "d2d") return Kind::d2d;
  if (word == "d2h") return Kind::d2h;
  return word != "h2d" && row.owner.ends_with(" out") ? Kind::d2h : Kind::h2d;
}

}  // namespace weir::cli::report
