#include "device/cpu/cpu_quota.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/scratch_folder.h"

namespace foretoken::cpu {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

class CpuQuota : public testing::Test {
 protected:
  const test::ScratchFolder folder;
  const fs::path root = folder.file("fs"), groups = folder.file("groups");
};

TEST_F(CpuQuota, NoneWithoutALimit) {
  EXPECT_FALSE(cpu_quota(groups, root));
  write(groups, "0::/a/b\n");
  write(root / "a/cpu.max", "max 100000\n");
  EXPECT_FALSE(cpu_quota(groups, root));
}

TEST_F(CpuQuota, TheLeastOfAGroupAndThoseAbove) {
  write(groups, "1:name=x:/c\n0::/a/b\n");
  write(root / "a/cpu.max", "150000 100000\n");
  write(root / "a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpu_quota(groups, root), 1.5);
  write(root / "cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(groups, root), 0.5);
}

TEST_F(CpuQuota, VersionOne) {
  write(groups, "4:cpuset:/x\n3:cpuacct,cpu:/docker/y\nnonsense\n");
  write(root / "cpu/docker/y/cpu.cfs_quota_us", "-1\n");
  write(root / "cpu/docker/y/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cpu_quota(groups, root));
  write(root / "cpu/docker/y/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpu_quota(groups, root), 2.5);
  // Inside the container its own group is the root.
  fs::remove_all(root / "cpu/docker");
  write(root / "cpu/cpu.cfs_quota_us", "300000\n");
  write(root / "cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(groups, root), 3.0);
}

}  // namespace
}  // namespace foretoken::cpu
