#pragma once
#include <atomic>
#include <chrono>
#include <memory>

namespace foretoken::cpu {

// Keeps the threads of a pool on physical cores of their own. A scheduler that sees threads spin
// and wake each other may leave two of them on one core, or on its two hyperthreads, for seconds,
// while another core idles; they then take twice as long. A thread that finds itself so asks to be
// moved and at once gives all its CPUs back: nothing is pinned, so that other processes, other
// engines and later changes of what the process may use stay the scheduler's business.
class ThreadsApart {
 public:
  // `move_interval`: a thread asks at most so often.
  explicit ThreadsApart(int num_threads,
                        std::chrono::microseconds move_interval = std::chrono::milliseconds(2));

  // By worker `worker` whenever it begins work: notes its core, and leaves it when a worker of a
  // lower number was seen there last and a core without a worker is allowed. True: it asked.
  bool settle(int worker);

 private:
  struct alignas(64) Place {
    std::atomic<int> core{-1};
    std::chrono::steady_clock::time_point asked;  // of its worker alone
  };

  bool is_taken(int core, int first, int end) const;
  bool leave(int worker);

  const int num_threads_;
  const std::chrono::microseconds move_interval_;
  std::unique_ptr<Place[]> places_;
};

}  // namespace foretoken::cpu
