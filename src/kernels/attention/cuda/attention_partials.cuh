#pragma once
#include "kernels/attention/cuda/attention_common.cuh"

// Where the kernels that share a row's splits among blocks leave what others fold
// (attention_fold.cuh).
namespace foretoken::cuda {

// Where the partial results of a row lie: those of head h and split s at index
// first + h * splits + s - first_split. What comes before first_split is folded into the first of
// them. first: -1, the row has none.
struct PartialRow {
  int first;
  int splits;
  int first_split;
  int unused;
};
// The workspace: [max_rows] PartialRow, values [capacity, head_dim], {highest, sum of weights}
// [capacity].
struct PartialSpace {
  float* workspace;
  int max_rows;
  int head_dim;
  int64_t capacity;    // partial results of a row and head; 0: no tile may be cut
  int64_t long_begin;  // those from here on are for long runs

  __device__ PartialRow* rows() const { return reinterpret_cast<PartialRow*>(workspace); }
  __device__ bool has_short(int row) const {
    return rows()[row].first >= 0 && rows()[row].first < long_begin;
  }
  __device__ bool has_long(int row) const { return rows()[row].first >= long_begin; }
  __device__ float* values(int64_t index) const {
    return workspace + int64_t{max_rows} * 4 + index * head_dim;
  }
  __device__ float2* state(int64_t index) const {
    return reinterpret_cast<float2*>(values(capacity)) + index;
  }
};

// How blocks share the tiles of long runs. Rows that are not cut have none in `space` already.
struct LongCut {
  PartialSpace space{};
  int parts = 1;   // blocks of a tile, at most
  int splits = 0;  // of a row and head that have room
  // The kernel ahead is that of the op's short runs, and it lets the next one start once all before
  // it has ended: the two need not wait for each other.
  bool overlaps = false;
};

}  // namespace foretoken::cuda
