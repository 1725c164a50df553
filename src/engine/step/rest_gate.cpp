#include "engine/step/rest_gate.h"

namespace foretoken {

// None: it is to be waited for.
std::optional<RestGate::Entered> RestGate::want(bool ends_requests, uint64_t* ticket) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Entered::kEnded;
  if (resting_) return Entered::kRests;
  ends_requests_.store(ends_requests || (wanted_.load() && ends_requests_.load()));
  wanted_.store(true);
  ++num_waiting_;
  *ticket = num_left_;
  return std::nullopt;
}

RestGate::Entered RestGate::wait_for_rest(uint64_t ticket, const std::stop_token& recall) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return resting_ || stopped_ || num_left_ != ticket; };
  const bool waited = changed_.wait(lock, recall, is_over);
  --num_waiting_;
  if (stopped_) return Entered::kEnded;
  if (waited) return num_left_ == ticket ? Entered::kRests : Entered::kLeft;
  if (num_waiting_ == 0) wanted_.store(false);
  return Entered::kLeft;
}

void RestGate::leave() {
  const std::lock_guard lock(mutex_);
  wanted_.store(false);
  resting_ = false;
  ++num_left_;
  changed_.notify_all();
}

void RestGate::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wanted_.store(false);
  resting_ = false;
  changed_.notify_all();
}

bool RestGate::is_resting() const {
  const std::lock_guard lock(mutex_);
  return resting_;
}

void RestGate::begin_rest() {
  const std::lock_guard lock(mutex_);
  resting_ = wanted_.load();
  changed_.notify_all();
}

}  // namespace foretoken
