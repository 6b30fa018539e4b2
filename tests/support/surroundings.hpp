// Environment variables and folders that tests change or make, and restore or remove.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace weir {

/// Sets an environment variable, and restores the value from before when it is destroyed.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    EXPECT_EQ(setenv(name_.c_str(), value.c_str(), 1), 0);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str());
  }

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

/// A new folder with a name of its own, which is removed when this is destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder() { EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_; }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  /// Returns the number of files in it.
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_ = testing::TempDir() + "weir-test-XXXXXX";
};

/// A temporary folder that is the user's cache folder while it exists.
class CacheFolder : public TemporaryFolder {
  const EnvironmentVariable variable_{"XDG_CACHE_HOME", path()};
};

}  // namespace weir
