#pragma once
#include <cstdint>

// Barriers among the blocks of a kernel that are all resident at once. The word of a barrier flips
// its highest bit when all have arrived; its other bits are then zero again, so that it needs no
// reset. A thread that waits reads the word before its own block arrives.
namespace foretoken::cuda {

__device__ inline uint32_t read_grid_word(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

// One thread of each of `blocks` blocks, of which one is `first`. What other threads of the block
// wrote before a barrier of the block is released too.
__device__ inline void arrive_at_grid(uint32_t* word, int blocks, bool first) {
  const uint32_t step = first ? 0x80000000u - static_cast<uint32_t>(blocks - 1) : 1;
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(step) : "memory");
}

__device__ inline void wait_for_grid(const uint32_t* word, uint32_t before) {
  while (((read_grid_word(word) ^ before) >> 31) == 0) {
  }
}

// Orders what this thread wrote, or has acquired, before copies by the copy engine.
__device__ inline void fence_copy_engine() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace foretoken::cuda
