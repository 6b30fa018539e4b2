// The reader of books of options.
#include "asian_option/book.hpp"
#include "common/input_error.hpp"
#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const weir::apps::Book book = weir::apps::read_book_from(bytes, "input");
    require(book.lines.size() == book.options.size(), "every option has a line");
    for (const auto& option : book.options) {
      require(option.spot > 0 && option.volatility >= 0 && option.maturity >= 0, "options can be");
      require(option.steps > 0 && option.paths > 0, "options can be priced");
    }
    for (const auto& bad : book.bad) weir::fuzz::require_one_line(bad.message);
    if (!book.bad.empty()) ++weir::fuzz::refused;
  } catch (const weir::apps::InputError& error) {
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
    ++weir::fuzz::refused;
  }
  return 0;
}
