#pragma once
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"

namespace foretoken::group {

using Clock = std::chrono::steady_clock;

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;
};

// What ended a wait: the socket is ready (an error or an end counts), the stop descriptor is
// readable, or the deadline is over.
enum class Waited { kReady, kStopped, kLate };

// `events` as poll() has them; stop_descriptor -1: none. Clock::time_point::max(): no deadline.
Waited wait_for(int descriptor, short events, int stop_descriptor, Clock::time_point deadline);

// What a try to move bytes did: some count, would block (0), or failed with the reason; the end of
// the stream is "the connection was closed".
Result<std::size_t> try_send(const Socket& socket, std::span<const std::byte> data);
Result<std::size_t> try_receive(const Socket& socket, std::span<std::byte> data);

// All bytes, or Aborted "stopped" / "no answer in time", or why it failed.
Status send_all(const Socket& socket, std::span<const std::byte> data, int stop_descriptor,
                Clock::time_point deadline);
Status receive_all(const Socket& socket, std::span<std::byte> data, int stop_descriptor,
                   Clock::time_point deadline);

}  // namespace foretoken::group
