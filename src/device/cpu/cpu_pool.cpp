#include "device/cpu/cpu_pool.h"

#include "base/spin.h"
#include "base/thread_role.h"
#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

constexpr uint64_t kClosed = 0xffffffffull;
constexpr int kSpinsBeforePark = 4000;

constexpr uint64_t generation_of(uint64_t ticket) { return ticket >> 32; }
constexpr uint64_t index_of(uint64_t ticket) { return ticket & 0xffffffffull; }

}  // namespace

CpuPool::CpuPool(int num_threads) : ticket_(kClosed), apart_(num_threads) {
  try {
    for (int worker = 1; worker < num_threads; ++worker) {
      helpers_.emplace_back([this, worker] { helper_main(worker); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

CpuPool::~CpuPool() { stop(); }

void CpuPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void CpuPool::run(int64_t count, Call call, void* context) {
  if (count <= 0) return;
  if (count == 1 || helpers_.empty()) {
    for (int64_t i = 0; i < count; ++i) call(context, i, 0);
    return;
  }
  const uint64_t generation = generation_of(ticket_.load(std::memory_order_relaxed)) + 1;
  // Closing first makes every stale ticket's exchange fail before the job's fields change.
  ticket_.store(generation << 32 | kClosed, std::memory_order_seq_cst);
  count_.store(count, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  completed_.store(0, std::memory_order_relaxed);
  ticket_.store(generation << 32, std::memory_order_seq_cst);
  apart_.settle(0);
  if (num_parked_.load(std::memory_order_seq_cst) > 0) wake_helpers();
  while (take_one(0)) {
  }
  await_completion(count);
}

// A helper that lost its core in the middle of an index needs a core more than the caller does.
void CpuPool::await_completion(int64_t count) {
  int64_t done = completed_.load(std::memory_order_acquire);
  for (int spins = 0; done != count && spins < kSpinsBeforePark; ++spins) {
    spin_pause(spins);
    done = completed_.load(std::memory_order_acquire);
  }
  if (done == count) return;
  caller_parked_.store(true, std::memory_order_seq_cst);
  while ((done = completed_.load(std::memory_order_seq_cst)) != count) completed_.wait(done);
  caller_parked_.store(false, std::memory_order_relaxed);
}

bool CpuPool::take_one(int worker) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const int64_t index = static_cast<int64_t>(index_of(ticket));
    if (index >= count_.load(std::memory_order_relaxed) || index_of(ticket) == kClosed) {
      return false;
    }
    const Call call = call_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      call(context, index, worker);
      completed_.fetch_add(1, std::memory_order_seq_cst);
      if (caller_parked_.load(std::memory_order_seq_cst)) completed_.notify_one();
      return true;
    }
  }
}

void CpuPool::helper_main(int worker) {
  set_thread_role(ThreadRole::kPool, "ft-pool");
  init_worker_thread();
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    apart_.settle(worker);
    while (take_one(worker)) {
    }
    seen = generation_of(ticket_.load(std::memory_order_acquire));
    int spins = 0;
    while (generation_of(ticket_.load(std::memory_order_acquire)) == seen &&
           spins < kSpinsBeforePark && !stop_.load(std::memory_order_relaxed)) {
      if (take_one(worker)) spins = 0;
      spin_pause(spins++);
    }
    if (generation_of(ticket_.load(std::memory_order_acquire)) != seen) continue;
    std::unique_lock lock(mutex_);
    num_parked_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] {
      return stop_.load() || generation_of(ticket_.load(std::memory_order_seq_cst)) != seen;
    });
    num_parked_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void CpuPool::wake_helpers() {
  {
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

}  // namespace foretoken::cpu
