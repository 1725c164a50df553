#include "group/wake_bell.h"

#include <utility>

namespace foretoken::group {

WakeBell::WakeBell(int num_ranks) : wakers_(static_cast<std::size_t>(num_ranks)) {}

void WakeBell::set_waker(int rank, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wakers_[static_cast<std::size_t>(rank)] = std::move(wake);
}

void WakeBell::ring(int rank, uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number <= rung_) return;
  rung_ = number;
  for (std::size_t other = 0; other < wakers_.size(); ++other) {
    if (other != static_cast<std::size_t>(rank) && wakers_[other]) wakers_[other]();
  }
}

void WakeBell::wake_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& wake : wakers_) {
    if (wake) wake();
  }
}

}  // namespace foretoken::group
