#include "engine/request/output_ring.h"

#include "base/spin.h"

namespace foretoken {
namespace {

constexpr int kSpinsBeforePark = 200;

}  // namespace

void OutputRing::push(const OutputEvent& event) {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (int spins = 0; tail - head_.load(std::memory_order_acquire) >= events_.size(); ++spins) {
    spin_pause(spins);
  }
  events_[tail % events_.size()] = event;
  tail_.store(tail + 1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst)) {
    {
      std::lock_guard lock(mutex_);
    }
    wake_.notify_one();
  }
}

OutputRing::Popped OutputRing::pop_until(OutputEvent& event, const Deadline& deadline) {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  const auto ready = [&] {
    return tail_.load(std::memory_order_seq_cst) != head || closed_.load(std::memory_order_seq_cst);
  };
  for (int spins = 0; !ready() && spins < kSpinsBeforePark; ++spins) spin_pause(spins);
  if (!ready()) {
    std::unique_lock lock(mutex_);
    parked_.store(true, std::memory_order_seq_cst);
    if (deadline) {
      wake_.wait_until(lock, *deadline, ready);
    } else {
      wake_.wait(lock, ready);
    }
    parked_.store(false, std::memory_order_relaxed);
  }
  // In this order: what was pushed before the ring was closed is seen.
  const bool closed = closed_.load(std::memory_order_seq_cst);
  if (tail_.load(std::memory_order_acquire) == head) {
    return closed ? Popped::kClosed : Popped::kLate;
  }
  event = events_[head % events_.size()];
  head_.store(head + 1, std::memory_order_release);
  return Popped::kEvent;
}

void OutputRing::close() {
  closed_.store(true, std::memory_order_seq_cst);
  {
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

}  // namespace foretoken
