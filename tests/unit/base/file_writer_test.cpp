#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/sys.hpp"

namespace weir::rt {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class FileWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "weir_file_writer";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(FileWriterTest, WritesAllOrNothing) {
  {
    sys::FileWriter writer(path("a"));
    writer.write(std::string(3 << 20, 'x'));
    EXPECT_FALSE(std::filesystem::exists(path("a")));
    writer.commit();
  }
  EXPECT_EQ(contents(path("a")).size(), 3u << 20);
  {
    sys::FileWriter writer(path("a"));
    writer.write(std::string("half"));
  }
  EXPECT_EQ(contents(path("a")).size(), 3u << 20);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileWriterTest, HasNoNameUntilItIsComplete) {
  const int unnamed = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (unnamed < 0) GTEST_SKIP() << folder_ << " cannot hold files without a name";
  close(unnamed);
  sys::FileWriter writer(path("a"));
  writer.write(std::string(3 << 20, 'x'));
  EXPECT_EQ(files(), 0u);
  writer.commit();
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileWriterTest, OverwritesALinkAndNotItsTarget) {
  std::ofstream(path("precious")) << "keep me";
  for (const char* target : {"precious", "missing"}) {
    std::filesystem::create_symlink(path(target), path("link"));
    sys::FileWriter writer(path("link"));
    writer.write(std::string("new"));
    writer.commit();
    EXPECT_FALSE(std::filesystem::is_symlink(path("link")));
    EXPECT_EQ(contents(path("link")), "new");
    std::filesystem::remove(path("link"));
  }
  EXPECT_EQ(contents(path("precious")), "keep me");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileWriterTest, KeepsToTheMaskOfTheUser) {
  const mode_t before = umask(077);
  sys::FileWriter writer(path("a"));
  writer.commit();
  umask(before);
  EXPECT_EQ(std::filesystem::status(path("a")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileWriterTest, NamesPathAndReason) {
  try {
    sys::FileWriter writer(path("missing/file"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("missing/file"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

TEST_F(FileWriterTest, ReportsAFullDisk) {
  sys::FileWriter writer("/dev/full");
  writer.write(std::string(100, 'x'));
  EXPECT_THROW(writer.commit(), Error);
}

}  // namespace
}  // namespace weir::rt
