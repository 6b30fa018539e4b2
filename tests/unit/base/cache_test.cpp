#include "base/cache.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "surroundings.hpp"

namespace weir::rt {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  std::string file(const std::string& key) const { return folder_.path("weir/things/" + key); }
  void overwrite(const std::string& key, const std::string& content) const {
    std::ofstream(file(key), std::ios::binary) << content;
  }

  const CacheFolder folder_;
};

TEST_F(CacheTest, WrittenContent_IsReadBack) {
  const Cache cache("things");
  EXPECT_FALSE(cache.read("a"));
  const std::string content("bytes\0and\nlines", 15);
  cache.write("a", content);
  cache.write("empty", "");
  EXPECT_EQ(Cache("things").read("a"), content);
  EXPECT_EQ(cache.read("empty"), "");
  EXPECT_TRUE(fs::is_regular_file(file("a")));
  cache.write("a", "another");
  EXPECT_EQ(cache.read("a"), "another");
}

TEST_F(CacheTest, DamagedFile_ReadsAsMissing) {
  const Cache cache("things");
  cache.write("a", "content");
  const auto whole = fs::file_size(file("a"));
  fs::resize_file(file("a"), whole - 1);
  EXPECT_FALSE(cache.read("a"));
  for (const char* const damaged : {"", "weir", "something else that is long enough for it"}) {
    overwrite("a", damaged);
    EXPECT_FALSE(cache.read("a")) << damaged;
  }
  cache.write("a", "content");
  EXPECT_EQ(cache.read("a"), "content");
}

TEST_F(CacheTest, UnusableFolder_ReadsAsMissingWithoutError) {
  std::ofstream(folder_.path("weir")) << "a file where the folder is to be";
  const Cache cache("things");
  cache.write("a", "content");
  EXPECT_FALSE(cache.read("a"));
  const EnvironmentVariable cached("XDG_CACHE_HOME", "not/absolute"), home("HOME", "");
  const Cache none("things");
  none.write("a", "content");
  EXPECT_FALSE(none.read("a"));
}

TEST(CacheKey, DependsOnAllOfTheText) {
  EXPECT_EQ(cache_key("text").size(), 32u);
  EXPECT_EQ(cache_key("text"), cache_key("text"));
  EXPECT_NE(cache_key("text"), cache_key("texu"));
  EXPECT_NE(cache_key("text"), cache_key("text "));
  EXPECT_NE(cache_key(std::string("\0a", 2)), cache_key("a"));
}

}  // namespace
}  // namespace weir::rt
