#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace foretoken {

// Threads for what would hold up a connection's thread: JSON, templates, tokenizing. Any thread may
// call it. The destructor stops it. Work that throws is logged and forgotten.
class WorkPool {
 public:
  // `max_queued`: most pieces of work that wait for a thread by try_post.
  WorkPool(int num_threads, size_t max_queued);
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Runs what is queued and ends the threads; what is posted later is dropped.
  void stop();

  // False, and nothing is queued, when too much waits already.
  bool try_post(std::function<void()> work);
  // For what ends work begun before, and so is bounded by that.
  void post(std::function<void()> work);

 private:
  void main();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
