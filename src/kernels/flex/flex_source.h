#pragma once
#include <string>

#include "kernels/flex/flex_program.h"

namespace foretoken {

// What the kernel of a program gets beside its name: one struct, laid out the same on both sides.
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
  float scale;
  float softcap;
};

inline constexpr int kFlexWarps = 4;  // of a block, which takes one row and query head
inline constexpr const char* kFlexKernel = "flex_attention";

// How elements of the cache and of queries lie.
enum class FlexElements : uint8_t { kF32, kBF16, kF32Codes, kBF16Codes };

// The source in CUDA C++, without headers, of the kernel with the program's expressions in it.
std::string flex_source(const FlexProgram& program, FlexElements elements);

}  // namespace foretoken
