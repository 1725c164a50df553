#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "serve/answer/serve_error.h"

namespace foretoken {

struct GateLimits {
  int max_num_seqs = 0;               // sequences that run at once; more of them wait
  int max_num_active_seqs = 0;        // running and waiting; 0: any
  int max_num_queued_requests = 0;    // sequences that wait; 0: any
  int64_t max_num_queued_tokens = 0;  // prompt tokens without a first output; 0: any
};

// Counts the requests between their submission and their end, and refuses those beyond the limits.
// Any thread. Outlives its tickets.
class RequestGate {
 public:
  explicit RequestGate(const GateLimits& limits) : limits_(limits) {}

  // Held by a request; its end gives the place back. One thread at a time.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { swap(other); }
    Ticket& operator=(Ticket&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Ticket() { release(); }

    // The first output came: the prompt waits no longer.
    void started();
    void release();

   private:
    friend class RequestGate;
    void swap(Ticket& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(num_sequences_, other.num_sequences_);
      std::swap(num_tokens_, other.num_tokens_);
    }
    RequestGate* gate_ = nullptr;
    int num_sequences_ = 0;
    int64_t num_tokens_ = 0;  // that still wait
  };

  // 429 with a time to come back beyond a limit, 503 while draining. A request that finds the
  // server empty gets in whatever its size.
  ServeResult<Ticket> enter(int num_sequences, int64_t num_prompt_tokens);

  // From now on nothing enters.
  void drain();
  bool draining() const;
  // False when requests are left after `timeout`.
  bool wait_empty(std::chrono::milliseconds timeout);

  int num_requests() const;

 private:
  int num_queued() const { return std::max(num_sequences_ - limits_.max_num_seqs, 0); }
  int seconds_to_wait() const;
  ServeError full(const std::string& what, const std::string& flag, int64_t limit) const;

  const GateLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  bool draining_ = false;
  int num_requests_ = 0;
  int num_sequences_ = 0;
  int64_t num_waiting_tokens_ = 0;
  double mean_interval_ = 0;  // seconds between ends of late
  std::chrono::steady_clock::time_point last_end_{};
};

}  // namespace foretoken
