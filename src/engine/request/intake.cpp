#include "engine/request/intake.h"

#include <chrono>

namespace foretoken {

bool Intake::push_chain(RequestState* newest, RequestState* oldest) {
  RequestState* head = head_.load(std::memory_order_relaxed);
  do {
    if (head == closed()) return false;
    oldest->next_submitted = head;
  } while (!head_.compare_exchange_weak(head, newest));
  wake();
  return true;
}

void Intake::announce_end() {
  end_announced_.store(true);
  wake();
}

void Intake::announce_change() {
  change_announced_.store(true);
  wake();
}

void Intake::stop() {
  stopping_.store(true);
  wake();
}

RequestState* Intake::take_and_leave(RequestState* left) {
  RequestState* newest = head_.exchange(left);
  RequestState* oldest = nullptr;
  while (newest != nullptr) {
    RequestState* next = newest->next_submitted;
    newest->next_submitted = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

void Intake::wait() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return has_news(); });
}

void Intake::wait_until(int64_t until_ns) {
  if (until_ns == INT64_MAX) return wait();
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(until_ns)};
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, until, [&] { return has_news(); });
}

void Intake::wake() {
  {
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

}  // namespace foretoken
