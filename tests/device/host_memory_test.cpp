#include "device/cpu/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/scratch_folder.h"

namespace foretoken::cpu {
namespace {

namespace fs = std::filesystem;

class MemoryQuota : public testing::Test {
 protected:
  void put(const fs::path& name, const std::string& text) {
    const fs::path file = root / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void in_group(const std::string& line) { std::ofstream(groups) << line << "\n"; }

  const test::ScratchFolder folder;
  const fs::path root = folder.file("fs"), groups = folder.file("groups");
};

TEST_F(MemoryQuota, NoneWithoutALimit) {
  EXPECT_FALSE(memory_quota(groups, root));
  in_group("0::/a");
  put("a/memory.max", "max\n");
  put("a/memory.current", "100\n");
  EXPECT_FALSE(memory_quota(groups, root));
}

TEST_F(MemoryQuota, WhatIsUsedIsNotFreeButForTheCacheOfFiles) {
  in_group("0::/a");
  put("a/memory.max", "1000\n");
  put("a/memory.current", "700\n");
  put("a/memory.stat", "anon 300\ninactive_file 250\nactive_file 100\n");
  const auto quota = memory_quota(groups, root);
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->total, 1000);
  EXPECT_EQ(quota->free, 650);
}

TEST_F(MemoryQuota, TheLeastOfAGroupAndThoseAbove) {
  in_group("0::/a/b");
  put("a/memory.max", "1000\n");
  put("a/memory.current", "950\n");
  put("a/b/memory.max", "400\n");
  put("a/b/memory.current", "10\n");
  const auto quota = memory_quota(groups, root);
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->total, 400);
  EXPECT_EQ(quota->free, 50);
}

TEST_F(MemoryQuota, VersionOne) {
  in_group("5:memory:/docker/x");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/docker/x/memory.limit_in_bytes", "1000\n");
  put("memory/docker/x/memory.usage_in_bytes", "1200\n");
  put("memory/docker/x/memory.stat", "total_inactive_file 100\n");
  const auto quota = memory_quota(groups, root);
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->total, 1000);
  EXPECT_EQ(quota->free, 0);
}

TEST(HostMemory, IsOfThisHost) {
  const HostMemory memory = host_memory();
  EXPECT_GT(memory.total, 0);
  EXPECT_GT(memory.free, 0);
  EXPECT_LE(memory.free, memory.total);
}

}  // namespace
}  // namespace foretoken::cpu
