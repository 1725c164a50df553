#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace foretoken::test {

// What must happen is waited for this long: the limit ends a test that hangs, and no machine is so
// slow that it strikes.
inline constexpr std::chrono::seconds kPatience{120};

// Closed until somebody opens it. Any thread.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // False when nobody has opened it in time.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Waits until `holds`; false when it does not in time.
template <class Predicate>
bool eventually(Predicate holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace foretoken::test
