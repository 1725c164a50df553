#include "device/cpu/cpu_thread.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "device/cpu/memory_nodes.h"

namespace foretoken::cpu {

namespace {

// OpenMP's functions are looked up at run time: only programs that link oneDNN have them.
void set_openmp_threads(int count) {
  using SetNumThreads = void (*)(int);
  if (auto set = reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(count);
  }
}

int openmp_threads() {
  using GetMaxThreads = int (*)();
  auto get = reinterpret_cast<GetMaxThreads>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return get != nullptr ? get() : 1;
}

std::vector<int> find_cores() {
  std::vector<int> cores;
  for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    std::getline(file, siblings);
    const std::vector<int> numbers = parse_number_list(siblings);
    cores.push_back(numbers.empty() ? cpu : numbers.front());
  }
  return cores;
}

}  // namespace

void init_worker_thread() { set_openmp_threads(1); }

SingleThreadScope::SingleThreadScope() : threads_before_(openmp_threads()) {
  set_openmp_threads(1);
}

SingleThreadScope::~SingleThreadScope() { set_openmp_threads(threads_before_); }

int core_of_cpu(int cpu) {
  // Never destroyed: the worker of a device that was given up runs until the process has ended.
  static const auto& cores = *new std::vector<int>(find_cores());
  return cpu >= 0 && cpu < std::ssize(cores) ? cores[static_cast<size_t>(cpu)] : cpu;
}

int num_physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cores.insert(core_of_cpu(cpu));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace foretoken::cpu
