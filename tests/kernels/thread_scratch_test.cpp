#include "kernels/cpu/thread_scratch.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken::cpu {
namespace {

struct SomeScratch {
  int value = 7;
};

TEST(ThreadScratch, IsEachThreadsOwnAndStays) {
  SomeScratch& mine = thread_scratch<SomeScratch>();
  EXPECT_EQ(mine.value, 7);
  mine.value = 8;
  std::thread([&mine] {
    EXPECT_NE(&thread_scratch<SomeScratch>(), &mine);
    EXPECT_EQ(thread_scratch<SomeScratch>().value, 7);
  }).join();
  EXPECT_EQ(&thread_scratch<SomeScratch>(), &mine);
  EXPECT_EQ(thread_scratch<SomeScratch>().value, 8);
}

}  // namespace
}  // namespace foretoken::cpu
