#include "net/socket_waits.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"

namespace foretoken::net {
namespace {

constexpr int kReadyAtOnce = 256;

epoll_event event_of(int socket, uint32_t wanted) {
  epoll_event event{};
  event.events = wanted;
  event.data.fd = socket;
  return event;
}

}  // namespace

SocketWaits::SocketWaits()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  FT_CHECK(epoll_ >= 0 && timer_ >= 0);
  watch(timer_, true, false);
}

SocketWaits::~SocketWaits() {
  close(timer_);
  close(epoll_);
}

void SocketWaits::watch(int socket, bool in, bool out) {
  epoll_event event = event_of(socket, (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u));
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event) == 0) return;
  FT_CHECK(errno == ENOENT && epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) == 0);
}

void SocketWaits::forget(int socket) {
  epoll_event event = event_of(socket, 0);
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, &event);
}

// The clock of steady_clock is the timer's; a time of zero would switch it off.
void SocketWaits::arm(std::optional<std::chrono::steady_clock::time_point> until) {
  if (until == armed_) return;
  itimerspec spec{};
  if (until) {
    const auto at = std::max<int64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(until->time_since_epoch()).count(), 1);
    spec.it_value.tv_sec = at / 1'000'000'000;
    spec.it_value.tv_nsec = at % 1'000'000'000;
  }
  FT_CHECK(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
  armed_ = until;
}

std::span<const SocketWaits::Ready> SocketWaits::wait(
    std::optional<std::chrono::steady_clock::time_point> until) {
  arm(until);
  ready_.clear();
  std::array<epoll_event, kReadyAtOnce> events;
  const int count = epoll_wait(epoll_, events.data(), kReadyAtOnce, -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.fd == timer_) {
      armed_.reset();
      uint64_t times = 0;
      (void)!read(timer_, &times, sizeof times);
      continue;
    }
    ready_.push_back({event.data.fd, (event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                      (event.events & (EPOLLERR | EPOLLHUP)) != 0});
  }
  return ready_;
}

}  // namespace foretoken::net
