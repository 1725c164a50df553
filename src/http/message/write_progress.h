#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace foretoken::http {

// For how long a client's system has taken nothing of what is being written. One thread.
class WriteProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Nothing was being written until now.
  void begin(Time now) { last_ = now; }

  // So many bytes were handed to the system so far, of which so many are not acknowledged.
  void note(Time now, uint64_t num_written, size_t num_unacknowledged) {
    if (num_written != num_written_ || num_unacknowledged < num_unacknowledged_) last_ = now;
    num_written_ = num_written;
    num_unacknowledged_ = num_unacknowledged;
  }

  std::chrono::steady_clock::duration silence(Time now) const { return now - last_; }

 private:
  Time last_;
  uint64_t num_written_ = 0;
  size_t num_unacknowledged_ = 0;
};

}  // namespace foretoken::http
