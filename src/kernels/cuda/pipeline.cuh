#pragma once
#include <cstdint>

#include "kernels/cuda/mma.cuh"

// Shared-memory barriers that count arrivals (mbarrier), for rings that some warps fill and others
// drain. A barrier's phases alternate in parity, from 0 on; a wait for parity 1 before the first
// phase has ended returns at once.
namespace foretoken::cuda {

__device__ inline void init_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Waits for the end of the phase with this parity.
__device__ inline void wait_barrier(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

}  // namespace foretoken::cuda
