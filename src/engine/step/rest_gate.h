#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace foretoken {

// Between those who want an engine to rest and its thread, which then uses no device until they let
// it go on.
class RestGate {
 public:
  // Any thread: wants rest and waits for it; at once where the engine rests. `ends_requests`: those
  // that run end first, otherwise the engine comes when none is left. `wake` tells the engine
  // thread to look. False: it has ended.
  template <class Wake>
  bool enter(bool ends_requests, Wake&& wake) {
    if (!want(ends_requests)) return false;
    wake();
    return wait_for_rest();
  }
  // Any thread: the engine goes on, once it is told to look.
  void leave();
  // Any thread: nobody rests any more.
  void stop();
  // Any thread.
  bool is_resting() const;

  // Engine thread: whether somebody wants it to rest, and requests to end for that.
  bool is_wanted() const { return wanted_.load(); }
  bool ends_requests() const { return ends_requests_.load(); }
  // Engine thread: from now on it rests, if somebody still wants it to, as long as is_resting says.
  void begin_rest();

 private:
  bool want(bool ends_requests);
  bool wait_for_rest();

  std::atomic<bool> wanted_{false};
  std::atomic<bool> ends_requests_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool resting_ = false;
  bool stopped_ = false;
};

}  // namespace foretoken
