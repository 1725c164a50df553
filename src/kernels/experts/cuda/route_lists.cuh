#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/experts/cuda/route_row.cuh"

namespace foretoken::cuda {

// What one block needs to list a step's choices: where the experts begin, the experts of the
// choices (of this rank; -1: of another one), and how many choices of each expert come before each
// 32 of them.
struct ListMemory {
  int* begins;       // [count + 1]
  int16_t* experts;  // [chunks * 32]
  uint16_t* before;  // [chunks, count]

  __host__ __device__ static size_t bytes(int64_t choices, int count) {
    const auto chunks = static_cast<size_t>(ceil_div(choices, 32));
    return sizeof(int) * (static_cast<size_t>(count) + 1) + chunks * (2 * 32 + 2 * size_t(count));
  }
  __device__ ListMemory(void* shared, int64_t choices, int count)
      : begins(static_cast<int*>(shared)),
        experts(reinterpret_cast<int16_t*>(begins + count + 1)),
        before(reinterpret_cast<uint16_t*>(experts + ceil_div(choices, 32) * 32)) {}
};

// Stores to the same place of the memory of the cluster's first block.
__device__ inline void store_at_first(int16_t* shared, int value) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, 0;\n"
      "st.shared::cluster.u16 [remote], %1;\n}" ::"r"(shared_address(shared)),
      "h"(static_cast<int16_t>(value))
      : "memory");
#endif
}

// Lists `choices` in all, whose experts are in `memory`, by a whole block of any number of warps.
__device__ inline void list_choices(const RouteExpertsArgs& args, int choices,
                                    const ListMemory& memory) {
  const int count = args.lists.count;
  const int chunks = ceil_div(choices, 32);
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const uint32_t below = (1u << lane) - 1;
  for (int i = thread; i < chunks * count; i += threads) memory.before[i] = 0;
  __syncthreads();
  for (int chunk = thread / 32; chunk < chunks; chunk += threads / 32) {
    const int choice = chunk * 32 + lane;
    const int expert = choice < choices ? memory.experts[choice] : -1;
    const uint32_t same = __match_any_sync(kAllLanes, expert);
    if (expert >= 0 && (same & below) == 0) {
      memory.before[chunk * count + expert] = static_cast<uint16_t>(__popc(same));
    }
  }
  __syncthreads();
  for (int expert = thread; expert < count; expert += threads) {
    int sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int own = memory.before[chunk * count + expert];
      memory.before[chunk * count + expert] = static_cast<uint16_t>(sum);
      sum += own;
    }
    memory.begins[expert + 1] = sum;
  }
  __syncthreads();
  if (thread < 32) {
    int first = 0;
    for (int base = 0; base < count; base += 32) {
      int sum = base + lane < count ? memory.begins[base + lane + 1] : 0;
      for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(kAllLanes, sum, offset);
        if (lane >= offset) sum += other;
      }
      if (base + lane < count) memory.begins[base + lane + 1] = first + sum;
      first += __shfl_sync(kAllLanes, sum, 31);
    }
    if (lane == 0) memory.begins[0] = 0;
  }
  __syncthreads();
  for (int i = thread; i <= count; i += threads) args.lists.begins[i] = memory.begins[i];
  for (int chunk = thread / 32; chunk < chunks; chunk += threads / 32) {
    const int choice = chunk * 32 + lane;
    const int expert = choice < choices ? memory.experts[choice] : -1;
    const uint32_t same = __match_any_sync(kAllLanes, expert);
    if (expert < 0) continue;
    const int place =
        memory.begins[expert] + memory.before[chunk * count + expert] + __popc(same & below);
    args.lists.entries[place] = choice;
  }
}

}  // namespace foretoken::cuda
