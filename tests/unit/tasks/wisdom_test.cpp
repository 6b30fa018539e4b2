#include "tasks/wisdom.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/cache.hpp"
#include "base/error.hpp"
#include "surroundings.hpp"

namespace weir::rt {
namespace {

class WisdomTest : public testing::Test {
 protected:
  /// Replaces the contents of the only file by what change(contents) returns, with its checksum.
  template <class Change>
  void rewrite(const Change& change) const {
    const auto file = *std::filesystem::directory_iterator(folder_.path("weir/wisdom"));
    const std::string key = file.path().filename();
    const Cache cache("wisdom");
    cache.write(key, change(*cache.read(key)));
  }

  const CacheFolder folder_;
  const Wisdom wisdom_{"machine", "host", "sort", 64};
  const Division division_{3, 2, 9, 4, 1.0 / 3, "finish"};
};

TEST_F(WisdomTest, StoredDivision_IsFoundWithAllDigits) {
  EXPECT_FALSE(wisdom_.find());
  wisdom_.keep(division_);
  EXPECT_EQ(wisdom_.find(), division_);
  wisdom_.keep({SIZE_MAX, 1, 0, 1, 0, ""});
  EXPECT_EQ(wisdom_.find(), (Division{SIZE_MAX, 1, 0, 1, 0, ""}));
}

TEST_F(WisdomTest, OtherMachineDomainsProblemOrSizeClass_IsNotFound) {
  wisdom_.keep(division_);
  EXPECT_TRUE(Wisdom("machine", "host", "sort", 90).find());
  EXPECT_FALSE(Wisdom("machine", "host", "sort", 91).find());
  EXPECT_FALSE(Wisdom("machine", "host", "merge", 64).find());
  EXPECT_FALSE(Wisdom("machine", "sim", "sort", 64).find());
  EXPECT_FALSE(Wisdom("other", "host", "sort", 64).find());
  EXPECT_THROW(Wisdom("machine", "host", "so\nrt", 64), Error);
}

TEST_F(WisdomTest, DamagedOrImpossibleEntry_IsNotFound) {
  const std::string numbers = "3 2 9 4 0.3333333333333333 finish";
  for (const std::string bad :
       {"", "3", "3 2 9 ", "3 2 9 1 ", "0 2 9 1 1 ", "3 0 9 1 1 ", "3 2 9 0 1 ", "3 2 9 1 -1 ",
        "3 2 9 1 inf ", "3 2 9 1 nan ", "-3 2 9 1 1 ", "x 2 9 1 1 ", "3 2 9 1 1"}) {
    wisdom_.keep(division_);
    rewrite([&](std::string text) {
      EXPECT_TRUE(text.ends_with(numbers)) << text;
      return text.replace(text.size() - numbers.size(), numbers.size(), bad);
    });
    EXPECT_FALSE(wisdom_.find()) << bad;
  }
  wisdom_.keep(division_);
  rewrite([](std::string text) { return text.replace(text.find("sort"), 4, "sork"); });
  EXPECT_FALSE(wisdom_.find());
}

}  // namespace
}  // namespace weir::rt
