#include "group/wake_bell.h"

#include <poll.h>

#include <utility>

#include "base/result.h"
#include "base/thread_role.h"

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

NewsWatch::NewsWatch(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {
  descriptors_.push_back(ending_.descriptor());
  thread_ = std::thread([this] { run(); });
}

NewsWatch::~NewsWatch() {
  ending_.end(aborted("the watch ends"));
  {
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
  thread_.join();
}

void NewsWatch::set_waker(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void NewsWatch::arm() {
  {
    const std::lock_guard lock(mutex_);
    is_armed_ = true;
  }
  changed_.notify_all();
}

void NewsWatch::disarm() {
  const std::lock_guard lock(mutex_);
  is_armed_ = false;
}

void NewsWatch::run() {
  set_thread_role(ThreadRole::kOther, "ft-news");
  while (wait_until_armed() && wait_for_news()) {
    const std::lock_guard lock(mutex_);
    if (!is_armed_) continue;
    is_armed_ = false;
    if (wake_) wake_();
  }
}

bool NewsWatch::wait_until_armed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_armed_ || ending_.ended(); });
  return !ending_.ended();
}

bool NewsWatch::wait_for_news() {
  std::vector<pollfd> polled;
  for (const int descriptor : descriptors_) polled.push_back({descriptor, POLLIN, 0});
  poll(polled.data(), polled.size(), -1);
  return !ending_.ended();
}

}  // namespace foretoken::group
