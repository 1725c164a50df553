#pragma once
#include <cstdint>
#include <span>

namespace foretoken::cpu {

// Codes of entries side by side in the work of a split: entry i has `dim` codes at entries[i].
struct Int8Entries {
  const int8_t* const* entries;
  int count;
  int dim;  // at most 512
};

// dots[q, i] = sum over d of queries[q, d] * code d of entry i: exact, for |queries| <= 32767.
// Rows of both are a stride apart.
struct Int8Scores {
  const int16_t* queries;
  int64_t query_stride;
  int32_t* dots;
  int64_t dot_stride;
  int num_queries;
};

// out[q, d] = sum over i of weights[q, i] * code d of entry i: one chain of fused multiply-adds
// over i, from zero.
struct Int8Sums {
  const float* weights;
  int64_t weight_stride;
  float* out;
  int64_t out_stride;
  int num_queries;
};

// The kernels of one kind of processor. Their bits are equal, for any number of queries.
struct Int8Kernels {
  const char* name;
  void (*score)(const Int8Entries& keys, const Int8Scores& scores);
  void (*weigh)(const Int8Entries& values, const Int8Sums& sums);
};

// Those that this machine can run, the fastest first.
std::span<const Int8Kernels> int8_kernels();

}  // namespace foretoken::cpu
