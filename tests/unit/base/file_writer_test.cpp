#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/sys.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class FileWriterTest : public testing::Test, public TemporaryFolder {};

TEST_F(FileWriterTest, UncommittedWriter_LeavesTheFileUnchanged) {
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

TEST_F(FileWriterTest, UncommittedFile_HasNoNameInTheFolder) {
  const int unnamed = open(path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (unnamed < 0) GTEST_SKIP() << path() << " cannot hold files without a name";
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

TEST_F(FileWriterTest, NewFile_HasThePermissionsOfTheUmask) {
  const mode_t before = umask(077);
  sys::FileWriter writer(path("a"));
  writer.commit();
  umask(before);
  EXPECT_EQ(std::filesystem::status(path("a")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileWriterTest, MissingFolder_ErrorNamesPathAndReason) {
  const std::string why = thrown_by<Error>([&] { sys::FileWriter writer(path("missing/file")); });
  EXPECT_NE(why.find("missing/file"), std::string::npos);
  EXPECT_NE(why.find("No such file"), std::string::npos);
}

TEST_F(FileWriterTest, FullDisk_CommitThrows) {
  sys::FileWriter writer("/dev/full");
  writer.write(std::string(100, 'x'));
  EXPECT_THROW(writer.commit(), Error);
}

}  // namespace
}  // namespace weir::rt
