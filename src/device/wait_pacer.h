#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace foretoken {

// How a host thread waits for one step after the other: asleep while the next one cannot be over,
// awake when it may be, since waking up takes longer than short steps do. Times are nanoseconds of
// one clock. One thread.
class WaitPacer {
 public:
  // A wait begins.
  void begin(int64_t now);
  // What to sleep from `now` on before the next look; 0: look again at once.
  int64_t sleep_ns(int64_t now) const;
  // What was waited for has come, before `now`.
  void end(int64_t now);

 private:
  static constexpr size_t kMemory = 8;  // ends that the shortest time between two is taken from

  std::array<int64_t, kMemory> intervals_{};
  size_t num_ends_ = 0;
  int64_t last_end_ = 0;
  int64_t expected_ = 0;  // the earliest likely end
  int64_t awake_until_ = 0;
};

}  // namespace foretoken
