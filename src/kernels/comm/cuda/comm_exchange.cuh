#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "device/cuda/cuda_communicator.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

__device__ inline void store_release(uint32_t* word, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ inline uint32_t load_acquire(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
// What a collective begins with instead of wait_for_previous. Where another lane's collective may
// need the device, no kernel that waits for this one may become resident: all of them could keep
// the other one out, whose rank waits for it while it keeps this one's peer out.
__device__ inline void wait_to_exchange(const CommView& comm) {
  if (!comm.in_lanes) let_next_start();
  wait_for_all_before();
}

// Numbers wrap; a peer is at most a few messages ahead. Ends as well when the group has.
__device__ inline void wait_for_number(const CommView& comm, const uint32_t* flag,
                                       uint32_t number) {
  constexpr int kLookEvery = 2048;
  for (int round = 1; static_cast<int32_t>(load_acquire(flag) - number) < 0; ++round) {
    if (round % kLookEvery != 0 || load_acquire(comm.aborted) == 0) continue;
    *reinterpret_cast<volatile uint64_t*>(&comm.failure->failed) = kGroupEnded;
    __threadfence_system();
    return;
  }
}

// Exchanges of one block with the same block on every other rank. All threads of a block call it
// alike, and blocks of one number make the same exchanges on all ranks, whatever kernels they are
// in. A slot of parity p is written again two exchanges later: by then its reader has ended the one
// between, and so this one.
class BlockExchange {
 public:
  __device__ explicit BlockExchange(const CommView& comm)
      : comm_(comm), block_(blockIdx.x), number_(comm.counts[blockIdx.x]) {
    __syncthreads();
  }

  // push(peer's slot) writes up to kCommBlockBytes for each peer; then received(rank) is what the
  // others wrote. The own slot is not written.
  template <class Push>
  __device__ void send(const Push& push) {
    send_each([&](int, char* slot) { push(slot); });
  }
  // The same with push(peer, its slot).
  template <class Push>
  __device__ void send_each(const Push& push) {
    ++number_;
    for (int peer = 0; peer < comm_.size; ++peer) {
      if (peer != comm_.rank) push(peer, slot(peer, comm_.rank));
    }
    __threadfence_system();
    __syncthreads();
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < comm_.size && peer != comm_.rank) {
      store_release(comm_.flags[peer] + block_ * kMaxRanks + comm_.rank, number_);
      wait_for_number(comm_, comm_.flags[comm_.rank] + block_ * kMaxRanks + peer, number_);
    }
    __syncthreads();
  }
  // What `rank` has sent here.
  __device__ const char* received(int rank) const { return slot(comm_.rank, rank); }
  __device__ void end() const {
    __syncthreads();
    if (threadIdx.x == 0) comm_.counts[block_] = number_;
  }

 private:
  __device__ char* slot(int owner, int source) const {
    const int64_t index = (int64_t{number_ % 2} * comm_.size + source) * kCommBlocks + block_;
    return comm_.slots[owner] + index * kCommBlockBytes;
  }
  const CommView& comm_;
  const uint32_t block_;
  uint32_t number_;
};

// What another device wrote is never taken from this one's first cache.
__device__ inline float4 load_fresh(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
__device__ inline uint64_t load_fresh(const uint64_t* from) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline uint32_t load_fresh(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

}  // namespace foretoken::cuda
