#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/communicator.h"
#include "device/cuda/cuda_device.h"
#include "group/rank_link.h"

namespace foretoken::cuda {

inline constexpr int kMaxRanks = 8;
inline constexpr int kCommBlocks = 128;               // blocks of a collective at most
inline constexpr int64_t kCommBlockBytes = 32 << 10;  // that a block gives a peer at once
inline constexpr int kRowBlocks = 512;                // blocks of an exchange of rows at most
inline constexpr int64_t kRowPartBytes = 2 << 20;     // of one of the three parts of its slot
inline constexpr int64_t kRowSlotBytes = 3 * kRowPartBytes;
// Blocks of a collective at most where those of another communicator may wait on the same device:
// of both together fewer than there are multiprocessors.
inline constexpr int kLaneBlocks = 56;

// What a collective's kernel needs, by value. Every rank has one region of device memory, which its
// peers write into: for each of two parities, source and block a slot of kCommBlockBytes, and for
// each block and source a flag, the number of the last exchange whose slot is filled. In a ring of
// stages a slot is written again when its reader has said so (acks). Exchanges of rows
// (row_exchange.cuh) have slots of their own, which tell by what they hold whether it has arrived.
struct CommView {
  int rank;
  int size;
  char* slots[kMaxRanks];      // by rank: [2, size, kCommBlocks, kCommBlockBytes]
  uint32_t* flags[kMaxRanks];  // by rank: [kCommBlocks, kMaxRanks]
  uint32_t* acks[kMaxRanks];   // by rank: [kCommBlocks] messages of it that were read
  uint32_t* counts;            // of this rank: [kCommBlocks] exchanges that a block has made
  uint32_t* sent;              // of this rank: [kCommBlocks] messages to the next in the ring
  uint32_t* received;          // of this rank: [kCommBlocks] messages from the one before
  char* row_slots[kMaxRanks];  // by rank: [2, size, kRowSlotBytes]
  uint32_t* row_counts;        // of this rank: [kRowBlocks] kernels that have exchanged rows
  const uint32_t* aborted;     // pinned: 1: the group has ended
  PlanFailure* failure;        // pinned: where a kernel says that it gave up
  bool in_lanes;               // CommunicatorOptions

  // The most blocks of a collective that could have `blocks`.
  __host__ __device__ int max_blocks(int blocks) const {
    return in_lanes && blocks > kLaneBlocks ? kLaneBlocks : blocks;
  }
};

class NcclExchange;

// What Communicator::handle of this device points to.
struct CommHandle {
  CommView peers{};              // where the ranks write into each other's memory
  NcclExchange* nccl = nullptr;  // where they do not
};
inline const CommView& peers_of(const void* comm) {
  return static_cast<const CommHandle*>(comm)->peers;
}
inline NcclExchange* nccl_of(const void* comm) {
  return static_cast<const CommHandle*>(comm)->nccl;
}

// Meets the other ranks of `link`. Those of one host open each other's memory: within a process
// directly, in other processes by its handle. Where some pair cannot, or `options` say so, all
// exchange through NCCL. `failure` outlives it.
Result<std::unique_ptr<Communicator>> make_communicator(group::RankLink& link, int ordinal,
                                                        const CommunicatorOptions& options,
                                                        PlanFailure* failure);

}  // namespace foretoken::cuda
