#include "device/wait_pacer.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr int64_t kEarly = 60'000;  // awake so long before the expected end,
constexpr int64_t kShare = 16;      // and a 16th of the time between ends
constexpr int64_t kLeastSleep = 40'000;
constexpr int64_t kAwake = 200'000;  // awake so long after it, at least,
constexpr int64_t kAwakeShare = 4;   // or a 4th of the time between ends
constexpr int64_t kNap = 20'000;     // then between looks

}  // namespace

void WaitPacer::begin(int64_t now) {
  int64_t interval = 0;
  if (num_ends_ > kMemory) interval = *std::min_element(intervals_.begin(), intervals_.end());
  expected_ = last_end_ + interval - interval / kShare - kEarly;
  awake_until_ = std::max(now, last_end_ + interval) + std::max(kAwake, interval / kAwakeShare);
}

int64_t WaitPacer::sleep_ns(int64_t now) const {
  if (now < expected_) return expected_ - now > kLeastSleep ? expected_ - now : 0;
  return now < awake_until_ ? 0 : kNap;
}

void WaitPacer::end(int64_t now) {
  intervals_[num_ends_++ % kMemory] = now - last_end_;
  last_end_ = now;
}

}  // namespace foretoken
