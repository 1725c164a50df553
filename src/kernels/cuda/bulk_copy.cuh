#pragma once
#include <cstdint>

#include "kernels/cuda/mma.cuh"

// Hopper's asynchronous copies to shared memory, the barriers that count them, and clusters.
namespace foretoken::cuda {

// An mbarrier in shared memory. A phase ends when `count` arrivals and all expected bytes are in.
__device__ inline void init_barrier(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}

// After init_barrier, before another thread, block or copy uses the barrier.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive(uint32_t address) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
}
__device__ inline void arrive(uint64_t* barrier) { arrive(shared_address(barrier)); }

// An arrival once all copies of this thread that copy16_async began have landed; the barrier counts
// it as any other.
__device__ inline void arrive_after_copies(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Zero in every block without a third dimension, which the compiler does not know.
__device__ inline uint32_t unknown_zero() {
  uint32_t zero;
  asm volatile("mov.u32 %0, %%tid.z;" : "=r"(zero));
  return zero;
}

// For a warp that has read what a copy overwrites once all have arrived: an arrival does not wait
// for reads under way, and the copy can overtake them (of ldmatrix on an H200 once in some 10^6).
// So this one needs `read`, bits of the last word of each read. zero: of unknown_zero, got ahead.
__device__ inline void arrive_after_reads(uint64_t* barrier, uint32_t read, uint32_t zero) {
  arrive(shared_address(barrier) + (read & zero));
}

// Arrives at the same barrier of block `rank` of the cluster. Orders no writes: a wider release
// would cost a fence of the whole device at every stage.
__device__ inline void arrive_at(uint64_t* barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// Adds to the bytes that the present phase waits for.
__device__ inline void expect_bytes(uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

__device__ inline void arrive_expecting(uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

// Waits for the end of the phase with this parity: 0 for the first, 1 for the second, ...
__device__ inline void wait_barrier(uint32_t address, int parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  }
}
__device__ inline void wait_barrier(uint64_t* barrier, int parity) {
  wait_barrier(shared_address(barrier), parity);
}

// Whether the phase has ended; costs nothing until the answer is used.
__device__ inline bool barrier_ended(uint64_t* barrier, int parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

// Counts through the places of a ring; `parity` is that of the present use.
template <int Places>
struct RingPlace {
  int place = 0;
  int parity = 0;
  __device__ void advance() {
    if (++place == Places) {
      place = 0;
      parity ^= 1;
    }
  }
};

// True for one lane of a full warp. The compiler knows that it is one, so that the copies that it
// issues need no loop over lanes.
__device__ inline bool elect_lane() {
  uint32_t elected;
  asm volatile(
      "{\n.reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(elected));
  return elected != 0;
}

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Barrier of all threads of a cluster. Orders mbarriers that were published, no other memory.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// L2 policy for data that is read once.
__device__ inline uint64_t evict_first_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// L2 policy for data that other blocks read too.
__device__ inline uint64_t evict_normal_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Copies `bytes` (a multiple of 16; both ends on 16 bytes) to this block's shared memory and counts
// them at `barrier`. One thread calls it.
__device__ inline void copy_bulk(void* shared, const void* global, int bytes, uint64_t* barrier,
                                 uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

// Asks for `bytes`, a multiple of 16, to come to the L2 cache.
__device__ inline void fetch_to_cache(const void* global, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

// A box of a two-dimensional tensor map at (column, row); `map` is a __grid_constant__ parameter.
__device__ inline void copy_box(void* shared, const void* map, int column, int row,
                                uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

// The same to the blocks of the cluster whose bits are set in `ranks`, at the same place of each,
// counted at the barrier of each.
__device__ inline void copy_box_to(uint16_t ranks, void* shared, const void* map, int column,
                                   int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(ranks)
      : "memory");
}

// The same of a three-dimensional map, with an L2 policy.
__device__ inline void copy_box(void* shared, const void* map, int3 at, uint64_t* barrier,
                                uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(at.x), "r"(at.y), "r"(at.z), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

__device__ inline void copy_box_to(uint16_t ranks, void* shared, const void* map, int3 at,
                                   uint64_t* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(
          shared_address(shared)),
      "l"(map), "r"(at.x), "r"(at.y), "r"(at.z), "r"(shared_address(barrier)), "h"(ranks),
      "l"(policy)
      : "memory");
}

// The other way: a box at `shared` to (column, row) of a map, as it is or added to what is there;
// what lies beyond the map's edges is left out. Generic writes of the box go before, then
// fence_async_proxy. The thread that began them waits for its groups of copies.
__device__ inline void store_box(const void* map, int column, int row, const void* shared) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(column), "r"(row), "r"(shared_address(shared))
      : "memory");
}
__device__ inline void add_box(const void* map, int column, int row, const void* shared) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], "
      "[%3];" ::"l"(map),
      "r"(column), "r"(row), "r"(shared_address(shared))
      : "memory");
}
__device__ inline void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until at most `Pending` groups of this thread still read shared memory; until all are done.
template <int Pending>
__device__ inline void wait_boxes_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
__device__ inline void wait_boxes() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ inline void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace foretoken::cuda
