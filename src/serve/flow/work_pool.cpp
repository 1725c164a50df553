#include "serve/flow/work_pool.h"

#include <exception>

#include "base/log.h"

namespace foretoken {

WorkPool::WorkPool(int num_threads, size_t max_queued) : max_queued_(max_queued) {
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { main(); });
  } catch (...) {
    stop();
    throw;
  }
}

WorkPool::~WorkPool() { stop(); }

void WorkPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  std::deque<std::function<void()>> late;
  std::lock_guard lock(mutex_);
  late.swap(queue_);
}

bool WorkPool::try_post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= max_queued_) return false;
    queue_.push_back(std::move(work));
  }
  news_.notify_one();
  return true;
}

void WorkPool::post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
  }
  news_.notify_one();
}

void WorkPool::main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    news_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& error) {
      FT_LOG(error, "a piece of work failed: {}", error.what());
    }
    work = nullptr;
    lock.lock();
  }
}

}  // namespace foretoken
