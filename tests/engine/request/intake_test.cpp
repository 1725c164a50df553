#include "engine/request/intake.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace foretoken {
namespace {

TEST(Intake, HandsOutInOrderOfArrival) {
  Intake intake;
  RequestState requests[3];
  EXPECT_EQ(intake.take(), nullptr);
  for (RequestState& request : requests) intake.push(&request);
  RequestState* taken = intake.take();
  for (RequestState& request : requests) {
    ASSERT_EQ(taken, &request);
    taken = taken->next_submitted;
  }
  EXPECT_EQ(taken, nullptr);
  EXPECT_EQ(intake.take(), nullptr);
}

TEST(Intake, AnAnnouncementIsSeenOnce) {
  Intake intake;
  EXPECT_FALSE(intake.take_end_announcement());
  intake.announce_end();
  intake.announce_end();
  EXPECT_TRUE(intake.take_end_announcement());
  EXPECT_FALSE(intake.take_end_announcement());
}

TEST(Intake, AWaitHasAnEnd) {
  Intake intake;
  intake.wait_until(0);
  intake.announce_change();
  intake.wait_until(INT64_MAX);
}

TEST(Intake, AChangeWakesOnce) {
  Intake intake;
  std::thread waiter([&] { intake.wait(); });
  intake.announce_change();
  waiter.join();
  intake.take_change_announcement();
  std::thread again([&] { intake.wait(); });
  intake.stop();
  again.join();
}

TEST(Intake, StopStaysAndWakes) {
  Intake intake;
  std::thread waiter([&] { intake.wait(); });
  intake.stop();
  waiter.join();
  EXPECT_TRUE(intake.stopping());
  intake.wait();
}

// A waiter that missed a wake-up would hang here.
TEST(Intake, ManyThreadsLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  Intake intake;
  std::vector<std::unique_ptr<RequestState[]>> requests;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    requests.push_back(std::make_unique<RequestState[]>(kEach));
    for (int j = 0; j < kEach; ++j) {
      requests.back()[static_cast<size_t>(j)].sequence.id = static_cast<uint64_t>(i * kEach + j);
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kEach; ++j)
        intake.push(&requests[static_cast<size_t>(i)][static_cast<size_t>(j)]);
    });
  }
  std::vector<int> next(kThreads, 0);
  for (int taken = 0; taken < kThreads * kEach;) {
    intake.wait();
    for (RequestState* one = intake.take(); one != nullptr; one = one->next_submitted, ++taken) {
      const auto thread = static_cast<size_t>(one->sequence.id / kEach);
      EXPECT_EQ(static_cast<int>(one->sequence.id % kEach), next[thread]++);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace foretoken
