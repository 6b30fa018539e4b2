// Functions that the readers of all formats of recordings share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/trace_file.hpp"

namespace weir::cli::report {

/// Numbers texts in the order in which they first come. The raw texts must outlive it.
class Numbering {
 public:
  /// text_of() converts the raw text of the file.
  explicit Numbering(std::string (*text_of)(std::string_view raw)) : text_of_(text_of) {}

  std::uint32_t operator()(std::string_view raw) {
    const auto [found, is_new] = numbers_.try_emplace(raw, numbers_.size());
    if (is_new) texts_.push_back(text_of_(raw));
    return static_cast<std::uint32_t>(found->second);
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::string (*text_of_)(std::string_view raw);
  std::unordered_map<std::string_view, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

/// The arrows of a recording, by small numbers; an arrow may lack an end.
class Arrows {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  using Ends = std::pair<std::uint32_t, std::uint32_t>;

  Ends& operator[](std::size_t number) {
    if (number >= ends_.size()) ends_.resize(number + 1, {kNone, kNone});
    return ends_[number];
  }
  /// Those from a slice to a later one.
  std::vector<Ends> take() const;

 private:
  std::vector<Ends> ends_;
};

/// Returns a number of cores as slices keep it: at least one.
std::uint32_t cores_of(std::uint64_t count) noexcept;

/// Returns a row by the name that recordings give it: "sim:0/p0 core 3 (2)" is one of "sim:0/p0".
TraceRow row_named(std::string domain, std::string name);

/// Returns the kind of a slice, by its category. The direction of a transfer follows from its name,
/// or, when the program gave it another name, from the row of its link.
Kind kind_of(std::string_view category, std::string_view name, const TraceRow& row);

/// Returns whether a file starts like a recording in Perfetto's protobuf that weir wrote.
bool is_perfetto(std::string_view bytes) noexcept;
/// Reads one. Throws apps::InputError that names it when it is damaged.
Trace read_perfetto(std::string_view bytes, const std::string& name);

}  // namespace weir::cli::report
