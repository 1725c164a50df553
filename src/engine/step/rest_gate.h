#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

namespace foretoken {

// Between those who want an engine to rest and its thread, which then uses no device until they let
// it go on.
class RestGate {
 public:
  // kLeft: whoever wanted it gave it up, or somebody let the engine go on meanwhile.
  enum class Entered : uint8_t { kRests, kLeft, kEnded };

  // Any thread: wants rest and waits for it, or until it is recalled; at once where the engine
  // rests. `ends_requests`: those that run end first, otherwise the engine comes when none is left;
  // of several who wait one that ends them is enough. `wake` tells the engine thread to look.
  template <class Wake>
  Entered enter(bool ends_requests, const std::stop_token& recall, Wake&& wake) {
    uint64_t ticket = 0;
    if (const std::optional<Entered> now = want(ends_requests, &ticket)) return *now;
    wake();
    const Entered entered = wait_for_rest(ticket, recall);
    if (entered == Entered::kLeft) wake();
    return entered;
  }
  // Any thread: the engine goes on, once it is told to look; who waits for its rest hears of it.
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
  std::optional<Entered> want(bool ends_requests, uint64_t* ticket);
  Entered wait_for_rest(uint64_t ticket, const std::stop_token& recall);

  std::atomic<bool> wanted_{false};
  std::atomic<bool> ends_requests_{false};
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool resting_ = false;
  bool stopped_ = false;
  int num_waiting_ = 0;
  uint64_t num_left_ = 0;  // how often `leave` was called
};

}  // namespace foretoken
