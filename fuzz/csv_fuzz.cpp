// The reader of tables of comma-separated numbers.
#include <cmath>
#include <optional>

#include "common/csv.hpp"
#include "common/input_error.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::require;

constexpr weir::apps::ReadLimits kLimits{.bytes = std::uint64_t{1} << 20};

template <class T>
std::optional<weir::apps::Matrix<T>> read_table(std::string_view bytes) {
  try {
    return weir::apps::read_csv<T>(bytes, "input", kLimits);
  } catch (const weir::apps::InputError& error) {
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
    return std::nullopt;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto wide = read_table<double>(bytes);
  const auto narrow = read_table<float>(bytes);
  if (!wide) {
    ++weir::fuzz::refused;
    return 0;
  }
  require(wide->size() * sizeof(double) <= kLimits.bytes, "a table is within the limits");
  for (std::size_t k = 0; k < wide->size(); ++k) {
    require(std::isfinite(wide->data()[k]), "every number is finite");
  }
  require(!narrow || (narrow->rows() == wide->rows() && narrow->columns() == wide->columns()),
          "both precisions have the same shape");
  return 0;
}
