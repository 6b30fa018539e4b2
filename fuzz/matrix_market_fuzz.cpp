// The reader of Matrix Market files.
#include "matrix_reader.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::fuzz::check_matrix_reader({reinterpret_cast<const char*>(data), size});
  return 0;
}
