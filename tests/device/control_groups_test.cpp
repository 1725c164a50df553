#include "device/cpu/control_groups.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/scratch_folder.h"

namespace foretoken::cpu {
namespace {

using Paths = std::vector<std::filesystem::path>;

TEST(ControlGroups, FoldersOfTheGroupAndOfThoseAbove) {
  const test::ScratchFolder folder;
  const std::filesystem::path groups = folder.file("groups"), root = "/fs";
  EXPECT_EQ(group_folders("cpu", groups, root), Paths{}) << "nothing is known";
  std::ofstream(groups) << "0::/a/b\n";
  EXPECT_EQ(group_folders("cpu", groups, root), (Paths{"/fs", "/fs/a", "/fs/a/b"}));
  std::ofstream(groups) << "4:cpuset:/x\n3:cpuacct,cpu:/y\nnonsense\n1:name=z:/z\n";
  EXPECT_EQ(group_folders("cpu", groups, root), (Paths{"/fs/cpu", "/fs/cpu/y"}));
  EXPECT_EQ(group_folders("memory", groups, root), Paths{});
}

}  // namespace
}  // namespace foretoken::cpu
