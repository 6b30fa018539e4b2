#include <gtest/gtest.h>

#include <string>

#include "base/utf8.hpp"

namespace weir::rt {
namespace {

std::string marks(std::size_t count) {
  std::string text;
  while (count-- > 0) text += "\xEF\xBF\xBD";
  return text;
}

TEST(Utf8, ValidText_IsUnchanged) {
  for (const char* text :
       {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xBC z"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
  EXPECT_EQ(valid_utf8(std::string(3, '\0')), std::string(3, '\0'));
}

TEST(Utf8, EachInvalidByte_BecomesAReplacementCharacter) {
  EXPECT_EQ(valid_utf8("\x80"), marks(1));
  EXPECT_EQ(valid_utf8("\xC1\xBF"), marks(2));
  EXPECT_EQ(valid_utf8("\xE0\x9F\xBF"), marks(3));
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), marks(3));
  EXPECT_EQ(valid_utf8("\xF0\x8F\xBF\xBF"), marks(4));
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), marks(4));
  EXPECT_EQ(valid_utf8("\xF5\x80\x80\x80"), marks(4));
  EXPECT_EQ(valid_utf8("\xFF"), marks(1));
}

TEST(Utf8, TruncatedCharacter_IsReplacedAndTheRestKept) {
  EXPECT_EQ(valid_utf8("a\xE2\x82"), "a" + marks(2));
  EXPECT_EQ(valid_utf8("\xF0\x9F\x8C"
                       "b"),
            marks(3) + "b");
  EXPECT_EQ(valid_utf8("\xC3\xC3\xBC"), marks(1) + "\xC3\xBC");
}

}  // namespace
}  // namespace weir::rt
