#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "device/cpu/threads_apart.h"

namespace foretoken::cpu {

// A persistent pool that runs index ranges. The calling thread takes part as worker 0; helpers
// spin briefly after a job and then park. A helper that wakes late finds nothing to do and is not
// waited for; one that lost its core within an index is, by a caller that spins briefly and then
// sleeps. So a busy machine costs speed, never a stall. Threads keep to cores of their own. One
// caller at a time.
class CpuPool {
 public:
  explicit CpuPool(int num_threads);
  ~CpuPool();
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  int num_threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls f(index, worker) for each index in [0, count), each once, in any order, and returns when
  // all have returned. count < 2^31. `worker` is in [0, num_threads) and exclusive while f runs.
  template <class F>
  void parallel_for(int64_t count, F&& f) {
    using Fn = std::remove_reference_t<F>;
    run(
        count,
        [](void* context, int64_t index, int worker) {
          (*static_cast<Fn*>(context))(index, worker);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  using Call = void (*)(void* context, int64_t index, int worker);

  void stop();
  void run(int64_t count, Call call, void* context);
  bool take_one(int worker);
  void await_completion(int64_t count);
  void helper_main(int worker);
  void wake_helpers();

  // generation << 32 | next index. The low half is kClosed while a job is being set up.
  std::atomic<uint64_t> ticket_;
  std::atomic<int64_t> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int64_t> completed_{0};
  std::atomic<bool> caller_parked_{false};
  std::atomic<int> num_parked_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  ThreadsApart apart_;
  std::vector<std::thread> helpers_;
};

}  // namespace foretoken::cpu
