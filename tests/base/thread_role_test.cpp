#include "base/thread_role.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace foretoken {
namespace {

TEST(ThreadRoleTest, BelongsToOneThread) {
  EXPECT_EQ(thread_role, ThreadRole::kOther);
  std::thread([] {
    set_thread_role(ThreadRole::kWorker, "ft-worker");
    EXPECT_EQ(thread_role, ThreadRole::kWorker);
    char name[16] = {};
    EXPECT_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    EXPECT_EQ(std::string(name), "ft-worker");
  }).join();
  EXPECT_EQ(thread_role, ThreadRole::kOther);
}

TEST(ForeignAllocationScopeTest, Nests) {
  EXPECT_EQ(foreign_allocation_depth, 0);
  {
    const ForeignAllocationScope outer;
    {
      const ForeignAllocationScope inner;
      EXPECT_EQ(foreign_allocation_depth, 2);
    }
    EXPECT_EQ(foreign_allocation_depth, 1);
  }
  EXPECT_EQ(foreign_allocation_depth, 0);
}

}  // namespace
}  // namespace foretoken
