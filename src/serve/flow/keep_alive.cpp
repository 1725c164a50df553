#include "serve/flow/keep_alive.h"

#include <algorithm>

#include "serve/flow/generation.h"

namespace foretoken {

KeepAlive::KeepAlive(const GenerationList& list, std::chrono::milliseconds interval)
    : list_(list), interval_(interval) {
  if (interval_.count() > 0) thread_ = std::thread([this] { main(); });
}

KeepAlive::~KeepAlive() { stop(); }

void KeepAlive::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void KeepAlive::main() {
  // A silence is seen at most a quarter late.
  const auto tick = std::max(interval_ / 4, std::chrono::milliseconds(1));
  std::unique_lock lock(mutex_);
  while (!news_.wait_for(lock, tick, [this] { return stopping_; })) {
    lock.unlock();
    for (const auto& generation : list_.all()) generation->keep_alive(interval_);
    lock.lock();
  }
}

}  // namespace foretoken
