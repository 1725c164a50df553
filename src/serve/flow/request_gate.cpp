#include "serve/flow/request_gate.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace foretoken {
namespace {

constexpr int kTooManyRequests = 429;
constexpr int kUnavailable = 503;

}  // namespace

void RequestGate::Ticket::started() {
  if (gate_ == nullptr || num_tokens_ == 0) return;
  std::lock_guard lock(gate_->mutex_);
  gate_->num_waiting_tokens_ -= std::exchange(num_tokens_, 0);
}

void RequestGate::Ticket::release() {
  RequestGate* gate = std::exchange(gate_, nullptr);
  if (gate == nullptr) return;
  using Clock = std::chrono::steady_clock;
  std::lock_guard lock(gate->mutex_);
  gate->num_waiting_tokens_ -= num_tokens_;
  gate->num_sequences_ -= num_sequences_;
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - gate->last_end_).count();
  gate->mean_interval_ += (std::min(seconds, 60.0) - gate->mean_interval_) / 8;
  gate->last_end_ = now;
  if (--gate->num_requests_ == 0) gate->empty_.notify_all();
}

ServeResult<RequestGate::Ticket> RequestGate::enter(int num_sequences, int64_t num_prompt_tokens) {
  std::lock_guard lock(mutex_);
  if (draining_) {
    return ServeError(kUnavailable,
                      resource_exhausted("the server is shutting down; it takes no new requests"),
                      1);
  }
  const int sum = num_sequences_ + num_sequences;
  if (num_requests_ > 0) {
    if (limits_.max_num_active_seqs > 0 && sum > limits_.max_num_active_seqs) {
      return full("sequences run or wait", "--max-num-active-seqs", limits_.max_num_active_seqs);
    }
    const int queued = sum - limits_.max_num_seqs;
    if (limits_.max_num_queued_requests > 0 && queued > limits_.max_num_queued_requests) {
      return full("sequences wait", "--max-num-queued-reqs", limits_.max_num_queued_requests);
    }
    const int64_t tokens = num_waiting_tokens_ + num_prompt_tokens;
    if (limits_.max_num_queued_tokens > 0 && tokens > limits_.max_num_queued_tokens) {
      return full("prompt tokens wait", "--max-num-queued-tokens", limits_.max_num_queued_tokens);
    }
  }
  ++num_requests_;
  num_sequences_ += num_sequences;
  num_waiting_tokens_ += num_prompt_tokens;
  Ticket ticket;
  ticket.gate_ = this;
  ticket.num_sequences_ = num_sequences;
  ticket.num_tokens_ = num_prompt_tokens;
  return ticket;
}

// As long as the waiting ones take at the pace of late.
int RequestGate::seconds_to_wait() const {
  const double seconds = mean_interval_ * std::max(num_queued(), 1);
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 60.0));
}

ServeError RequestGate::full(const std::string& what, const std::string& flag,
                             int64_t limit) const {
  return {kTooManyRequests,
          resource_exhausted("the server is full: more " + what + " than " + flag + " " +
                             std::to_string(limit) + " allows; try again later"),
          seconds_to_wait()};
}

void RequestGate::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
}

bool RequestGate::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool RequestGate::wait_empty(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, timeout, [this] { return num_requests_ == 0; });
}

int RequestGate::num_requests() const {
  std::lock_guard lock(mutex_);
  return num_requests_;
}

}  // namespace foretoken
