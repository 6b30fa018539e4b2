#include "base/text.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(Text, Split_KeepsEmptyPartsAndEmptyTextHasNone) {
  EXPECT_EQ(split("a,b,,c", ','), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(Text, ReadsSizesWithUnitsAndRefusesMalformedOnes) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64MiB"), std::uint64_t{64} << 20);
  EXPECT_EQ(parse_size("1.5GiB"), std::uint64_t{3} << 29);
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size("1k"), 1024u);
  for (const char* wrong : {"", "MiB", "-1", "1e300GiB", "nan", "12x", "0x10", " 1", "1 "}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, TrailingTextOverflowOrInfinity_IsNotANumber) {
  EXPECT_EQ(parse_unsigned("17"), 17u);
  EXPECT_EQ(parse_unsigned("17a"), std::nullopt);
  EXPECT_EQ(parse_unsigned("99999999999999999999"), std::nullopt);
  EXPECT_EQ(parse_real("0.5"), 0.5);
  EXPECT_EQ(parse_real("inf"), std::nullopt);
}

TEST(Text, FormatsSizesInBinaryUnits) {
  EXPECT_EQ(format_size(17), "17 B");
  EXPECT_EQ(format_size(std::uint64_t{3} << 29), "1.5 GiB");
}

TEST(Text, ControlCharacters_BecomeSpacesInOneLine) {
  EXPECT_EQ(one_line("buffer 'two\nlines\t\x1b[31m\x7f'"), "buffer 'two lines  [31m '");
  EXPECT_EQ(one_line("\xC3\xA9 \xFF"), "\xC3\xA9 \xFF");
  EXPECT_EQ(one_line(""), "");
}

TEST(Text, SuggestsTheNearestName) {
  const std::vector<std::string> names = {"cholesky", "matmul"};
  EXPECT_EQ(did_you_mean("choleski", names), " (did you mean 'cholesky'?)");
  EXPECT_EQ(did_you_mean("quicksort", names), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace weir::rt
