#include "base/cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace weir::rt {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string made = fs::temp_directory_path() / "weir-cache-XXXXXX";
    folder_ = mkdtemp(made.data());
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~CacheTest() override {
    fs::remove_all(folder_);
    unsetenv("XDG_CACHE_HOME");
  }

  fs::path file(const std::string& key) const { return folder_ / "weir" / "things" / key; }
  void overwrite(const std::string& key, const std::string& content) const {
    std::ofstream(file(key), std::ios::binary) << content;
  }

  fs::path folder_;
};

TEST_F(CacheTest, KeepsContents) {
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

TEST_F(CacheTest, DoesNotBelieveDamagedFiles) {
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

TEST_F(CacheTest, IsNeverAnError) {
  std::ofstream(folder_ / "weir") << "a file where the folder is to be";
  const Cache cache("things");
  cache.write("a", "content");
  EXPECT_FALSE(cache.read("a"));
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  setenv("HOME", "", 1);
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
