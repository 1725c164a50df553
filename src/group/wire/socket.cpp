#include "group/wire/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace foretoken::group {
namespace {

int milliseconds_until(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<long long>(left.count(), 0, 1 << 30));
}

Result<std::size_t> failed(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return std::size_t{0};
  if (error == EPIPE || error == ECONNRESET) return aborted("the connection was closed");
  return aborted(std::strerror(error));
}

Status stopped_or_late(Waited waited) {
  return aborted(waited == Waited::kStopped ? "stopped" : "no answer in time");
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Waited wait_for(int descriptor, short events, int stop_descriptor, Clock::time_point deadline) {
  pollfd polled[2] = {{descriptor, events, 0}, {stop_descriptor, POLLIN, 0}};
  for (;;) {
    const int ready = poll(polled, 2, milliseconds_until(deadline));
    if (ready < 0) continue;  // a signal
    if (polled[1].revents != 0) return Waited::kStopped;
    if (polled[0].revents != 0) return Waited::kReady;
    if (Clock::now() >= deadline) return Waited::kLate;
  }
}

Result<std::size_t> try_send(const Socket& socket, std::span<const std::byte> data) {
  const ssize_t sent =
      ::send(socket.descriptor(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return failed(errno);
  return static_cast<std::size_t>(sent);
}

Result<std::size_t> try_receive(const Socket& socket, std::span<std::byte> data) {
  const ssize_t got = ::recv(socket.descriptor(), data.data(), data.size(), MSG_DONTWAIT);
  if (got < 0) return failed(errno);
  if (got == 0 && !data.empty()) return aborted("the connection was closed");
  return static_cast<std::size_t>(got);
}

Status send_all(const Socket& socket, std::span<const std::byte> data, int stop_descriptor,
                Clock::time_point deadline) {
  while (!data.empty()) {
    FT_ASSIGN_OR_RETURN(const std::size_t sent, try_send(socket, data));
    data = data.subspan(sent);
    if (sent > 0) continue;
    const Waited waited = wait_for(socket.descriptor(), POLLOUT, stop_descriptor, deadline);
    if (waited != Waited::kReady) return stopped_or_late(waited);
  }
  return {};
}

Status receive_all(const Socket& socket, std::span<std::byte> data, int stop_descriptor,
                   Clock::time_point deadline) {
  while (!data.empty()) {
    FT_ASSIGN_OR_RETURN(const std::size_t got, try_receive(socket, data));
    data = data.subspan(got);
    if (got > 0) continue;
    const Waited waited = wait_for(socket.descriptor(), POLLIN, stop_descriptor, deadline);
    if (waited != Waited::kReady) return stopped_or_late(waited);
  }
  return {};
}

}  // namespace foretoken::group
