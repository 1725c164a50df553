#include "device/cpu/cpu_thread.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

namespace foretoken::cpu {
namespace {

// OpenMP's own answer, or 1 where no runtime is loaded.
int openmp_threads() {
  auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return get != nullptr ? get() : 1;
}

TEST(CpuThread, WorkersHaveOneOpenMpThread) {
  const int before = openmp_threads();
  std::thread([] {
    init_worker_thread();
    EXPECT_EQ(openmp_threads(), 1);
  }).join();
  EXPECT_EQ(openmp_threads(), before);
}

TEST(CpuThread, ScopeRestoresTheCount) {
  const int before = openmp_threads();
  {
    const SingleThreadScope scope;
    EXPECT_EQ(openmp_threads(), 1);
  }
  EXPECT_EQ(openmp_threads(), before);
}

TEST(CpuThread, ACoreIsItsFirstHyperthread) {
  for (int cpu = 0; cpu < static_cast<int>(std::thread::hardware_concurrency()); ++cpu) {
    EXPECT_LE(core_of_cpu(cpu), cpu);
    EXPECT_EQ(core_of_cpu(core_of_cpu(cpu)), core_of_cpu(cpu));
  }
  EXPECT_EQ(core_of_cpu(-1), -1);
  EXPECT_EQ(core_of_cpu(1 << 20), 1 << 20);
}

TEST(CpuThread, CountsAtLeastOneCore) {
  EXPECT_GE(num_physical_cores(), 1);
  EXPECT_LE(num_physical_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace foretoken::cpu
