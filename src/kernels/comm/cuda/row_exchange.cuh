#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/comm/cuda/comm_exchange.cuh"

namespace foretoken::cuda {

// A word of a slot of rows that nobody has written. No message has it: a not-a-number of these bits
// travels as another one.
inline constexpr uint32_t kNoWord = 0xffffffffu;
__device__ inline uint32_t sendable(uint32_t word) { return word == kNoWord ? 0x7fffffffu : word; }

// 16 and 8 bytes of a row; each word arrives for itself.
__device__ inline void send_words(uint4* to, uint4 w) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(sendable(w.x)),
               "r"(sendable(w.y)), "r"(sendable(w.z)), "r"(sendable(w.w))
               : "memory");
}
__device__ inline void send_words(uint2* to, uint2 w) {
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(sendable(w.x)),
               "r"(sendable(w.y))
               : "memory");
}
__device__ inline uint4 load_words(const uint4* from) {
  uint4 w;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(from)
               : "memory");
  return w;
}
__device__ inline uint2 load_words(const uint2* from) {
  uint2 w;
  asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(w.x), "=r"(w.y)
               : "l"(from)
               : "memory");
  return w;
}
__device__ inline bool lacks_words(uint4 w) {
  return w.x == kNoWord || w.y == kNoWord || w.z == kNoWord || w.w == kNoWord;
}
__device__ inline bool lacks_words(uint2 w) { return w.x == kNoWord || w.y == kNoWord; }
__device__ inline void clear_words(uint4* at) { *at = {kNoWord, kNoWord, kNoWord, kNoWord}; }
__device__ inline void clear_words(uint2* at) { *at = {kNoWord, kNoWord}; }

// Rows that ranks write into each other's slots without a flag: a reader looks until no word is
// kNoWord, and clears what it has read (the one-shot form of TensorRT-LLM's "Lamport" all-reduce).
// A kernel uses the slots of one parity. It ends only when it has heard from every rank's kernel of
// the same number, and so when every rank's kernel before that has ended and cleared the slots that
// the next kernel writes. A kernel without live rows is not counted, on any rank.
class RowExchange {
 public:
  // All threads of every block of the kernel, of at most kRowBlocks.
  __device__ explicit RowExchange(const CommView& comm) : comm_(comm), parity_(count(comm) % 2) {}

  // Number k of the other ranks, ascending.
  __device__ int peer(int k) const { return k < comm_.rank ? k : k + 1; }
  // The same from the next rank on: ranks that send in this order send to different ones.
  __device__ int peer_after(int k) const {
    const int rank = comm_.rank + 1 + k;
    return rank < comm_.size ? rank : rank - comm_.size;
  }
  // `at`: a byte of the slot.
  template <class Words>
  __device__ void send(int peer, int64_t at, Words words) const {
    send_words(reinterpret_cast<Words*>(slot(peer, comm_.rank) + at), words);
  }
  template <class Words>
  __device__ Words* received(int peer, int64_t at) const {
    return reinterpret_cast<Words*>(slot(comm_.rank, peer) + at);
  }
  // words[i] = what arrives at place(i), of `received`, or what it was where that is null. All
  // places are asked at once, for as long as one lacks something. Ends as well when the group has.
  template <class Words, int Count, class Place>
  __device__ void take(Words (&words)[Count], const Place& place) const {
    bool lacking = true;
    for (int round = 1; lacking && !has_ended(round); ++round) {
      lacking = false;
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        if (const Words* from = place(i); from != nullptr) words[i] = load_words(from);
      }
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        if (place(i) != nullptr) lacking = lacking || lacks_words(words[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (Words* from = place(i); from != nullptr) clear_words(from);
    }
  }

 private:
  // Every kernel moves the counts of all blocks on, however many it has; each block moves its own,
  // so that none is read after it has moved.
  __device__ static uint32_t count(const CommView& comm) {
    const uint32_t number = comm.row_counts[blockIdx.x];
    __syncthreads();
    const auto step = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = static_cast<int>(blockIdx.x + threadIdx.x * gridDim.x); i < kRowBlocks;
         i += step) {
      comm.row_counts[i] = number + 1;
    }
    return number;
  }
  __device__ bool has_ended(int round) const {
    constexpr int kLookEvery = 2048;
    if (round % kLookEvery != 0 || load_acquire(comm_.aborted) == 0) return false;
    *reinterpret_cast<volatile uint64_t*>(&comm_.failure->failed) = kGroupEnded;
    __threadfence_system();
    return true;
  }
  __device__ char* slot(int owner, int source) const {
    return comm_.row_slots[owner] + (int64_t{parity_} * comm_.size + source) * kRowSlotBytes;
  }
  const CommView& comm_;
  const uint32_t parity_;
};

}  // namespace foretoken::cuda
