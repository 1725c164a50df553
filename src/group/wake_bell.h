#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace foretoken::group {

// Wakes ranks that are threads of one process and sleep until one of them has work. What they meet
// for is numbered on all of them alike: the first that comes to a number rings for it. Any thread.
class WakeBell {
 public:
  explicit WakeBell(int num_ranks);

  // What wakes a rank; empty: nothing. It is called on threads of the others, and not after it was
  // replaced.
  void set_waker(int rank, std::function<void()> wake);
  // `rank` comes to meeting `number`; the others are woken unless one of them has come to it.
  void ring(int rank, uint64_t number);
  // Wakes all: they are to look what has happened.
  void wake_all();

 private:
  std::mutex mutex_;
  uint64_t rung_ = 0;
  std::vector<std::function<void()>> wakers_;
};

}  // namespace foretoken::group
