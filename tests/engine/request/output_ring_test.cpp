#include "engine/request/output_ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace foretoken {
namespace {

OutputEvent event_of(int number) {
  OutputEvent event;
  event.ids[0] = number;
  event.num_ids = 1;
  return event;
}

TEST(OutputRing, KeepsOrderAndEndsWhenClosedAndEmpty) {
  OutputRing ring(4);
  ring.push(event_of(1));
  ring.push(event_of(2));
  ring.close();
  OutputEvent event;
  ASSERT_TRUE(ring.pop(event));
  EXPECT_EQ(event.ids[0], 1);
  ASSERT_TRUE(ring.pop(event));
  EXPECT_EQ(event.ids[0], 2);
  EXPECT_FALSE(ring.pop(event));
  EXPECT_FALSE(ring.pop(event));
}

TEST(OutputRing, WaitsNoLongerThanUntilTheDeadline) {
  using Popped = OutputRing::Popped;
  OutputRing ring(4);
  OutputEvent event;
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(5); };
  EXPECT_EQ(ring.pop_until(event, soon()), Popped::kLate);
  ring.push(event_of(3));
  EXPECT_EQ(ring.pop_until(event, soon()), Popped::kEvent);
  EXPECT_EQ(event.ids[0], 3);
  ring.push(event_of(4));
  ring.close();
  EXPECT_EQ(ring.pop_until(event, soon()), Popped::kEvent);
  EXPECT_EQ(ring.pop_until(event, soon()), Popped::kClosed);
}

// Smaller than what passes through: the sender waits for the receiver and nothing is overwritten.
TEST(OutputRing, ASmallRingPassesManyEvents) {
  constexpr int kEvents = 20000;
  OutputRing ring(3);
  std::thread sender([&] {
    for (int i = 0; i < kEvents; ++i) ring.push(event_of(i));
    ring.close();
  });
  OutputEvent event;
  int received = 0;
  for (; ring.pop(event); ++received) ASSERT_EQ(event.ids[0], received);
  sender.join();
  EXPECT_EQ(received, kEvents);
}

// Pauses let the receiver park, so that every event has to wake it.
TEST(OutputRing, WakesAParkedReceiver) {
  OutputRing ring(8);
  std::thread sender([&] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ring.push(event_of(i));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ring.close();
  });
  OutputEvent event;
  int received = 0;
  while (ring.pop(event)) ++received;
  sender.join();
  EXPECT_EQ(received, 20);
}

}  // namespace
}  // namespace foretoken
