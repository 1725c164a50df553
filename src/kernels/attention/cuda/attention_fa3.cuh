#pragma once
#include "kernels/attention/attention.h"
#include "kernels/cuda/common.cuh"

// Attention of long runs by FlashInfer's FlashAttention-3 kernel for Hopper. Its bits are not those
// of the other kernels, so that a row's depend on whether its run is long:
// AttentionFamily::kFlashInfer.
namespace foretoken::cuda {

inline constexpr int kFa3KvTile = 96;  // KV positions that a block takes at once
// Rows of one query head that a block takes at once.
__host__ __device__ constexpr int fa3_tile_rows(int head_dim) { return head_dim == 64 ? 192 : 128; }

// What each block of FlashInfer's persistent grid works on, as its scheduler reads it: block b has
// the works bounds[b] .. bounds[b + 1] - 1, each a query tile of one run and head. Device memory.
struct Fa3Lists {
  int32_t* bounds;     // [blocks + 1]
  int32_t* tile;       // number of the tile in its run
  int32_t* head;       // query head
  int32_t* first_row;  // token row with which the run begins
  int32_t* num_rows;   // of the run
  int32_t* kv_begin;   // where the sequence's entries of block_tables begin
  int32_t* kv_len;     // KV positions that the run's last row sees
  uint32_t* places;    // of the planner's own: which block has the work, and where in its list
};

// Whether this build and the current device have the kernel.
bool has_attention_fa3();

// The op's arguments with room for the lists behind the workspace that the other kernels may use;
// of kFlash where the kernel cannot take the op's long runs.
AttentionArgs with_fa3_room(AttentionArgs args);

// Takes the long runs of arguments of kFlashInfer that with_fa3_room has returned. The lists of an
// op that `repeats` another are the other's. False where nothing was launched.
bool launch_attention_fa3(const AttentionArgs& args, cudaStream_t stream);

// FlashInfer's kernel over planned lists, launched without programmatic dependence: it starts when
// all before it has ended, and what follows it starts when it has. False where the build has none.
bool run_fa3(const AttentionArgs& args, const Fa3Lists& lists, cudaStream_t stream);
// Whether the build has it.
bool is_fa3_built();

}  // namespace foretoken::cuda
