#include "device/cpu/threads_apart.h"

#include <sched.h>

#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {

ThreadsApart::ThreadsApart(int num_threads, std::chrono::microseconds move_interval)
    : num_threads_(num_threads),
      move_interval_(move_interval),
      places_(std::make_unique<Place[]>(static_cast<size_t>(num_threads))) {
  core_of_cpu(0);  // reads the table here rather than on a worker
}

bool ThreadsApart::settle(int worker) {
  const int core = core_of_cpu(sched_getcpu());
  Place& mine = places_[static_cast<size_t>(worker)];
  if (mine.core.load(std::memory_order_relaxed) != core) {
    mine.core.store(core, std::memory_order_relaxed);
  }
  if (!is_taken(core, 0, worker)) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - mine.asked < move_interval_) return false;
  mine.asked = now;
  return leave(worker);
}

bool ThreadsApart::is_taken(int core, int first, int end) const {
  for (int i = first; i < end; ++i) {
    if (places_[static_cast<size_t>(i)].core.load(std::memory_order_relaxed) == core) return true;
  }
  return false;
}

bool ThreadsApart::leave(int worker) {
  cpu_set_t allowed, wanted;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  CPU_ZERO(&wanted);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const int core = core_of_cpu(cpu);
    if (!is_taken(core, 0, worker) && !is_taken(core, worker + 1, num_threads_)) {
      CPU_SET(cpu, &wanted);
    }
  }
  if (CPU_COUNT(&wanted) == 0 || sched_setaffinity(0, sizeof wanted, &wanted) != 0) return false;
  places_[static_cast<size_t>(worker)].core.store(core_of_cpu(sched_getcpu()),
                                                  std::memory_order_relaxed);
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

}  // namespace foretoken::cpu
