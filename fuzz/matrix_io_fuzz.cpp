// Feeds the matrix readers whatever libFuzzer invents: they return a matrix or throw an InputError.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "common/matrix_io.hpp"

namespace {

constexpr weir::apps::ReadLimits limits{.bytes = std::uint64_t{1} << 20};

template <class T>
std::optional<weir::apps::Matrix<T>> read(std::string_view bytes) {
  try {
    return weir::apps::read_matrix_from<T>(bytes, "input", limits);
  } catch (const weir::apps::InputError&) {
    return std::nullopt;
  }
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto wide = read<double>(bytes);
  const auto narrow = read<float>(bytes);
  if (!wide) return 0;
  require(wide->size() * sizeof(double) <= limits.bytes);
  require(narrow && narrow->rows() == wide->rows() && narrow->columns() == wide->columns());
  return 0;
}
