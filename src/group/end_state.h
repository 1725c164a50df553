#pragma once
#include <foretoken/status.h>

#include <atomic>
#include <functional>
#include <mutex>

namespace foretoken::group {

// Why a group has ended, if it has; shared by all links of a process. Any thread.
class EndState {
 public:
  EndState();
  ~EndState();
  EndState(const EndState&) = delete;
  EndState& operator=(const EndState&) = delete;

  // The first reason stays; later ones are dropped. `why` is not ok.
  void end(const Status& why);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Ok while it has not ended.
  Status why() const;
  // Readable for poll() from the end on.
  int descriptor() const { return descriptor_; }
  // Called once with the reason, on the thread that ends it; at once where it has ended. One.
  void on_end(std::function<void(const Status&)> listener);

 private:
  int descriptor_;
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;
  Status why_;
  std::function<void(const Status&)> listener_;
};

}  // namespace foretoken::group
