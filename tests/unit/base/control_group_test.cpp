#include "base/control_group.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "surroundings.hpp"

namespace weir::rt {
namespace {

class ControlGroup : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = mount_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void expect(const std::string& groups, double cores, std::uint64_t memory_bytes) const {
    const GroupLimits limits = read_group_limits(mount_.path(), groups);
    EXPECT_EQ(limits.cores, cores) << groups;
    EXPECT_EQ(limits.memory_bytes, memory_bytes) << groups;
  }

 private:
  const TemporaryFolder mount_;
};

TEST_F(ControlGroup, NestedGroups_LowestLimitApplies) {
  write("/a/cpu.max", "150000 100000");
  write("/a/memory.max", "4096");
  write("/a/b/cpu.max", "max 100000");
  write("/a/b/memory.max", "8192");
  write("/a/b/c/cpu.max", "400000 100000");
  write("/a/b/c/memory.max", "max");
  expect("0::/a/b/c\n", 1.5, 4096);
  expect("0::/a/b\n", 1.5, 4096);
  expect("0::/other\n", 0, 0);
  expect("0::/\n", 0, 0);
  write("/cpu.max", "50000 100000");
  write("/memory.max", "1024");
  expect("0::/a/b/c\n", 0.5, 1024);
}

TEST_F(ControlGroup, Version1Groups_LimitsAreRead) {
  write("/cpu/a/cpu.cfs_quota_us", "200000");
  write("/cpu/a/cpu.cfs_period_us", "100000");
  write("/cpu/cpu.cfs_quota_us", "-1");
  write("/cpu/cpu.cfs_period_us", "100000");
  write("/memory/b/memory.limit_in_bytes", "4096");
  expect("4:memory:/b\n3:cpu,cpuacct:/a\n1:name=systemd:/a\n", 2, 4096);
}

/// In a container whose groups are those of the host, its own is at the root of what it sees.
TEST_F(ControlGroup, GroupPathOutsideTheMount_LimitsOfTheRootApply) {
  write("/cpu.max", "300000 100000");
  write("/memory.max", "4096");
  expect("0::/docker/0123456789\n", 3, 4096);
  expect("0::/../other\n", 3, 4096);
  expect("0::", 3, 4096);
  expect("nonsense\n:\n", 0, 0);
}

}  // namespace
}  // namespace weir::rt
