#include "engine/step/rest_gate.h"

namespace foretoken {

bool RestGate::want(bool ends_requests) {
  std::lock_guard lock(mutex_);
  if (stopped_) return false;
  if (!resting_) ends_requests_.store(ends_requests);
  wanted_.store(true);
  return true;
}

bool RestGate::wait_for_rest() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return resting_ || stopped_ || !wanted_.load(); });
  return !stopped_;
}

void RestGate::leave() {
  std::lock_guard lock(mutex_);
  wanted_.store(false);
  resting_ = false;
  changed_.notify_all();
}

void RestGate::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  wanted_.store(false);
  resting_ = false;
  changed_.notify_all();
}

bool RestGate::is_resting() const {
  std::lock_guard lock(mutex_);
  return resting_;
}

void RestGate::begin_rest() {
  std::lock_guard lock(mutex_);
  resting_ = wanted_.load();
  changed_.notify_all();
}

}  // namespace foretoken
