#pragma once
#include <cstdint>
#include <string>

#include "kernels/flex/flex_program.h"

namespace foretoken {

// What the kernels of a program get beside their names: one struct, laid out the same on both
// sides.
struct FlexKernelArgs {
  const int* num_rows;
  const void* q;
  void* out;
  const int* positions;
  const int* row_slot;
  const int* block_tables;
  const void* k;
  const void* v;
  const float* k_scales;
  const float* v_scales;
  const float* slopes;
  const float* sinks;
  float* workspace;
  float* states;                    // as of AttentionArgs, instead of `out`
  const int* token_positions;       // RowsOfHeads::positions
  const int* page_begins;           // RowsOfHeads::begins
  const unsigned int* of_requests;  // FlexProgram::of_requests
  int max_blocks;
  int max_rows;
  int num_heads;
  int num_kv_heads;
  int block_size;
  int head_dim;
  int window;
  int chunk;
  int kv_begin;
  int first_head;
  int max_splits;    // of the workspace
  int num_parts;     // blocks that share a tile's splits; 0: none do
  int window_rows;   // of a warp, where none do
  int part_heads;    // of states
  int context_size;  // as of KvLayer, 1 without states
  int context_rank;
  int heads_of_row;  // RowsOfHeads::num_kv_heads
  float scale;
  float softcap;
};

inline constexpr int kFlexWarps = 4;  // of a block, which takes one row and query head
inline constexpr const char* kFlexKernel = "flex_attention";

// How elements of the cache and of queries lie: with codes of KvFormat::kFp8, or of kInt8.
enum class FlexElements : uint8_t {
  kF32,
  kBF16,
  kF32Codes,
  kBF16Codes,
  kF32Integers,
  kBF16Integers
};

// The source in CUDA C++, without headers, of the kernel with the program's expressions in it.
std::string flex_source(const FlexProgram& program, FlexElements elements);

// The same of the kernel of tensor cores (flex_tile_kernel.h): queries of bfloat16, and with
// `codes` a cache of KvFormat::kFp8. head_dim: one that flex_tile_takes.
std::string flex_tile_source(const FlexProgram& program, bool codes, int32_t head_dim);

}  // namespace foretoken
