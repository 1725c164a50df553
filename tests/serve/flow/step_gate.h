#pragma once
#include <condition_variable>
#include <mutex>

#include "support/gate.h"

namespace foretoken::test {

// Where an engine thread passes with each span of a step that the device has ended. Open at first;
// while it is closed the engine stands still, but for as many spans as are let through.
class StepGate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return open_ || num_let_ > 0; });
    if (!open_ && num_let_ > 0) --num_let_;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
    num_let_ = 0;
  }
  void let(int count) {
    const std::lock_guard lock(mutex_);
    num_let_ += count;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int num_let_ = 0;
};

}  // namespace foretoken::test
