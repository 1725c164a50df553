#pragma once
#include "kernels/cuda/block_scan.cuh"
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

// So many choices are listed by looking at all of them for each expert and choice.
inline constexpr int kFewChoices = 64;

__device__ inline void list_few_choices(const RouteExpertsArgs& args, int choices,
                                        const ListMemory& memory) {
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  // Those of another rank are behind all others.
  const auto expert_of = [&](int choice) { return static_cast<uint16_t>(memory.experts[choice]); };
  for (int expert = thread; expert <= args.lists.count; expert += threads) {
    int before = 0;
#pragma unroll 8
    for (int i = 0; i < choices; ++i) before += expert_of(i) < expert;
    args.lists.begins[expert] = before;
  }
  for (int choice = thread; choice < choices; choice += threads) {
    const int own = expert_of(choice);
    if (own >= args.lists.count) continue;
    int before = 0;
#pragma unroll 8
    for (int i = 0; i < choices; ++i) {
      before += i < choice ? expert_of(i) <= own : expert_of(i) < own;
    }
    args.lists.entries[before] = choice;
  }
}

// memory.before of one expert becomes how many choices come before each 32; returns their sum.
__device__ inline int count_before(const ListMemory& memory, int chunks, int count, int expert) {
  constexpr int kAtOnce = 8;
  int sum = 0;
  for (int first = 0; first < chunks; first += kAtOnce) {
    uint16_t* from = memory.before + first * count + expert;
    int own[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) own[i] = first + i < chunks ? from[i * count] : 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < chunks) from[i * count] = static_cast<uint16_t>(sum);
      sum += own[i];
    }
  }
  return sum;
}

// Of each expert's choices, in memory.begins[expert + 1], the places where they end; by a warp.
__device__ inline void sum_choices(const ListMemory& memory, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int each = ceil_div(count, 32);
  const int from = min(lane * each, count), to = min(from + each, count);
  int own = 0;
  for (int expert = from; expert < to; ++expert) own += memory.begins[expert + 1];
  int end = sum_of_lanes_before(own);
  for (int expert = from; expert < to; ++expert) {
    end += memory.begins[expert + 1];
    memory.begins[expert + 1] = end;
  }
  if (lane == 0) memory.begins[0] = 0;
}

// Lists `choices` in all, whose experts are in `memory`, by a whole block of any number of warps.
__device__ inline void list_choices(const RouteExpertsArgs& args, int choices,
                                    const ListMemory& memory) {
  if (choices <= kFewChoices) return list_few_choices(args, choices, memory);
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
    memory.begins[expert + 1] = count_before(memory, chunks, count, expert);
  }
  __syncthreads();
  if (thread < 32) sum_choices(memory, count);
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
