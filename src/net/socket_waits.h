#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace foretoken::net {

// Waits for sockets and for a time at once, over epoll and a timer with the clock's own resolution.
// The work of a wait is that of the sockets that are ready, however many are watched. One thread.
class SocketWaits {
 public:
  struct Ready {
    int socket;
    bool in;
    bool out;
    bool failed;  // an error, or the other side hung up
  };

  SocketWaits();
  ~SocketWaits();
  SocketWaits(const SocketWaits&) = delete;
  SocketWaits& operator=(const SocketWaits&) = delete;

  // From now on, in place of what was watched for this socket before.
  void watch(int socket, bool in, bool out);
  // A socket that is not watched, or closed, is passed over.
  void forget(int socket);

  // Until a socket is ready or the time has come; nullopt: for sockets alone. Empty when the time
  // came, or a signal. Valid until the next call.
  std::span<const Ready> wait(std::optional<std::chrono::steady_clock::time_point> until);

 private:
  void arm(std::optional<std::chrono::steady_clock::time_point> until);

  int epoll_;
  int timer_;
  std::optional<std::chrono::steady_clock::time_point> armed_;
  std::vector<Ready> ready_;
};

}  // namespace foretoken::net
