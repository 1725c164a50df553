#pragma once

namespace foretoken {

inline constexpr const char* kFlexTileKernel = "flex_tiles";

// Head sizes that the kernel of tensor cores is written for.
constexpr bool flex_tile_takes(int head_dim) {
  return head_dim == 64 || head_dim == 128 || head_dim == 192 || head_dim == 256;
}

// Source in CUDA C++ of a kernel over queries of bfloat16 (Dao, "FlashAttention-2", 2023, and his
// splits of the context for few rows), behind that of flex_source.h's expressions. TILE_DIM is the
// head size, CODES 1 for KvFormat::kFp8. A warp takes up to 16 rows, of one sequence and KV head,
// and reads keys and values as its lanes multiply them, without shared memory. It reduces splits
// (AttentionSplits) of 256 positions and more; with num_parts > 0 warps share those of a tile and
// leave partial results as attention_common.cuh says, otherwise a warp takes all of them in
// ascending order. Both are the same sums, so that bits depend on the row alone.
extern const char* const kFlexTileSource;

}  // namespace foretoken
