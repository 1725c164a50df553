#pragma once
#include "kernels/cuda/bulk_copy.cuh"

namespace foretoken::cuda {

// Places in shared memory that bulk copies fill and warps read, in turns: `full` counts the bytes
// that arrived, `empty` the warps that have read. Each thread goes through them by itself.
struct DequantRing {
  uint8_t* data;
  uint64_t* full;
  uint64_t* empty;
  int places;
  int place_bytes;
  int place = 0;
  int parity = 0;

  __device__ DequantRing(uint8_t* memory, uint64_t* barriers, int count, int bytes)
      : data(memory), full(barriers), empty(barriers + count), places(count), place_bytes(bytes) {}
  // `writers`: arrivals with bytes that a place has.
  __device__ void init(int readers, int writers = 1) const {
    for (int i = 0; i < places; ++i) {
      init_barrier(full + i, writers);
      init_barrier(empty + i, readers);
    }
  }
  __device__ uint8_t* here() const { return data + place * place_bytes; }
  __device__ uint64_t* arrival() const { return full + place; }
  __device__ void advance() {
    if (++place == places) {
      place = 0;
      parity ^= 1;
    }
  }
  __device__ void wait_full() const { wait_barrier(full + place, parity); }
  // Passes at once the first time around.
  __device__ void wait_empty() const { wait_barrier(empty + place, parity ^ 1); }
  // By a lane of a warp that has read, see arrive_after_reads; `held` is zero.
  __device__ void release(uint32_t held) const { arrive(shared_address(empty + place) + held); }
  __device__ void release_at(int rank, uint32_t held) const {
    arrive_at(empty + place + held, rank);
  }
};

}  // namespace foretoken::cuda
