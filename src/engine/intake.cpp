#include "engine/intake.h"

namespace foretoken {

void Intake::push(RequestState* request) {
  request->next_submitted = head_.load(std::memory_order_relaxed);
  while (!head_.compare_exchange_weak(request->next_submitted, request)) {
  }
  wake();
}

void Intake::announce_end() {
  end_announced_.store(true);
  wake();
}

void Intake::stop() {
  stopping_.store(true);
  wake();
}

RequestState* Intake::take() {
  RequestState* newest = head_.exchange(nullptr);
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
  wake_.wait(lock,
             [&] { return head_.load() != nullptr || end_announced_.load() || stopping_.load(); });
}

void Intake::wake() {
  {
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

}  // namespace foretoken
