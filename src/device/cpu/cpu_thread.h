#pragma once

namespace foretoken::cpu {

// Called once by every thread that runs ops, before its first op. Keeps oneDNN single-threaded on
// this thread, so that OpenMP never starts a team of its own.
void init_worker_thread();

// Keeps oneDNN single-threaded on this thread while it lives: primitives are made for the number
// of threads that they will have.
class SingleThreadScope {
 public:
  SingleThreadScope();
  ~SingleThreadScope();
  SingleThreadScope(const SingleThreadScope&) = delete;
  SingleThreadScope& operator=(const SingleThreadScope&) = delete;

 private:
  int threads_before_;
};

// A number of the physical core that a CPU belongs to: its first hyperthread. The CPU itself where
// the system does not say, and for numbers that no CPU has.
int core_of_cpu(int cpu);

// Physical cores that this process may use.
int num_physical_cores();

}  // namespace foretoken::cpu
