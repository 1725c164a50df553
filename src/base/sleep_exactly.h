#pragma once
#include <sys/prctl.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace foretoken {

// For threads that poll. Its sleeps end on time, not up to 50 us late as a thread's sleeps do
// otherwise; so do all later sleeps of the calling thread.
inline void sleep_exactly(int64_t ns) {
  thread_local const bool sharp = prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL) == 0;
  (void)sharp;
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

}  // namespace foretoken
