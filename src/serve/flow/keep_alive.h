#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "serve/flow/generation_list.h"

namespace foretoken {

// Writes a comment into each stream that has been silent for `interval`, so that no proxy takes it
// for dead. A thread of its own; 0: none, and nothing is written.
class KeepAlive {
 public:
  // `list` outlives this.
  KeepAlive(const GenerationList& list, std::chrono::milliseconds interval);
  // stop()
  ~KeepAlive();
  KeepAlive(const KeepAlive&) = delete;
  KeepAlive& operator=(const KeepAlive&) = delete;

  // Ends the thread; it holds no generation afterwards.
  void stop();

 private:
  void main();

  const GenerationList& list_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable news_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace foretoken
