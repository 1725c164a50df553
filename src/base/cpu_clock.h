#pragma once
#include <cstdint>
#include <ctime>

namespace foretoken {

// Nanoseconds that the calling thread has run on a core: it does not grow while others have it.
inline int64_t thread_cpu_ns() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace foretoken
