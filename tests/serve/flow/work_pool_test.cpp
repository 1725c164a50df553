#include "serve/flow/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <system_error>

#include "support/no_threads.h"

namespace foretoken {
namespace {

TEST(WorkPool, RunsEverythingThatWasTaken) {
  std::atomic<int> sum{0};
  {
    WorkPool pool(2, 1000);
    for (int i = 1; i <= 100; ++i) {
      ASSERT_TRUE(pool.try_post([&sum, i] { sum += i; }));
    }
  }
  EXPECT_EQ(sum, 5050);
}

TEST(WorkPool, RefusesBeyondItsLimitButNotWhatEndsWork) {
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::promise<void> running;
  std::atomic<int> done{0};
  WorkPool pool(1, 2);
  ASSERT_TRUE(pool.try_post([&] {
    running.set_value();
    gate.wait();
  }));
  running.get_future().wait();
  EXPECT_TRUE(pool.try_post([&] { ++done; }));
  EXPECT_TRUE(pool.try_post([&] { ++done; }));
  EXPECT_FALSE(pool.try_post([&] { ++done; }));
  pool.post([&] { ++done; });
  open.set_value();
  pool.stop();
  EXPECT_EQ(done, 3);
}

TEST(WorkPool, WorkThatThrowsHarmsNoOther) {
  std::atomic<bool> ran{false};
  WorkPool pool(1, 10);
  ASSERT_TRUE(pool.try_post([] { throw std::runtime_error("planned"); }));
  ASSERT_TRUE(pool.try_post([&] { ran = true; }));
  pool.stop();
  EXPECT_TRUE(ran);
}

TEST(WorkPool, WhatIsPostedAfterItStoppedIsDropped) {
  std::atomic<bool> ran{false};
  WorkPool pool(1, 10);
  pool.stop();
  EXPECT_FALSE(pool.try_post([&] { ran = true; }));
  pool.post([&] { ran = true; });
  pool.stop();
  EXPECT_FALSE(ran);
}

TEST(WorkPool, WithoutThreadsThereIsNoPool) {
  const test::NoThreads none;
  EXPECT_THROW(WorkPool(3, 10), std::system_error);
}

}  // namespace
}  // namespace foretoken
