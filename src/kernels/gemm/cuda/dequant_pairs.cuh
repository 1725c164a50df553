#pragma once
#include <cstdint>

// Two bfloat16 in a word, the first one in the lower half.
namespace foretoken::cuda {

__device__ inline uint32_t multiply_pair(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
__device__ inline uint32_t subtract_pair(uint32_t a, uint32_t b) {
  uint32_t difference;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
}
__device__ inline uint32_t multiply_add_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

// The same as dequant_ints.h wants them.
struct DevicePairs {
  __device__ static uint32_t multiply(uint32_t a, uint32_t b) { return multiply_pair(a, b); }
  __device__ static uint32_t subtract(uint32_t a, uint32_t b) { return subtract_pair(a, b); }
  __device__ static uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c) {
    return multiply_add_pair(a, b, c);
  }
  __device__ static uint32_t bytes(uint32_t a, uint32_t b, uint32_t places) {
    return __byte_perm(a, b, places);
  }
};

}  // namespace foretoken::cuda
