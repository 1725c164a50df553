#pragma once
#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/lora/lora.h"

// Kernels of adapters fetch what is constant in a step before the op before them has ended: the
// tiles too, since group_lora promises that they are there.
namespace foretoken::cuda {

// Grids are as large as there can be items, or as keep the device busy.
inline int lora_blocks(int64_t items, int per_sm) {
  return static_cast<int>(std::min<int64_t>(items, int64_t{device_traits().num_sms} * per_sm));
}

template <class T>
__device__ const T* lora_a(const LoraMatrix& matrix) {
  return static_cast<const T*>(matrix.a);
}

__device__ inline LoraMatrix lora_matrix(const LoraMatrix* matrices, int adapter, int stride,
                                         int part) {
  return matrices[int64_t{adapter} * stride + part];
}

// A hint that memory at `from` is soon read.
__device__ inline void prefetch_line(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

inline constexpr int kLineBytes = 128;

}  // namespace foretoken::cuda
