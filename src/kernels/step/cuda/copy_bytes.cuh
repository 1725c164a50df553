#pragma once
#include <cstddef>
#include <cstdint>

// Threads that copy bytes together.

namespace foretoken::cuda {

// Thread `thread` of `stride`. The loads of a thread come before its first store: host memory
// answers late.
template <class Word>
__device__ void copy_words(Word* to, const Word* from, int64_t count, int64_t thread,
                           int64_t stride) {
  constexpr int kAhead = 4;
  int64_t i = thread;
  for (; i + (kAhead - 1) * stride < count; i += kAhead * stride) {
    Word words[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) words[k] = from[i + k * stride];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) to[i + k * stride] = words[k];
  }
  for (; i < count; i += stride) to[i] = from[i];
}

// In the largest words that both ends and the size divide by.
__device__ inline void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes,
                                  int64_t thread, int64_t stride) {
  const auto bits = reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from) |
                    static_cast<uint64_t>(bytes);
  if (bits % sizeof(uint4) == 0) {
    copy_words(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from),
               bytes / static_cast<int64_t>(sizeof(uint4)), thread, stride);
  } else if (bits % sizeof(uint32_t) == 0) {
    copy_words(reinterpret_cast<uint32_t*>(to), reinterpret_cast<const uint32_t*>(from),
               bytes / static_cast<int64_t>(sizeof(uint32_t)), thread, stride);
  } else {
    copy_words(to, from, bytes, thread, stride);
  }
}

}  // namespace foretoken::cuda
