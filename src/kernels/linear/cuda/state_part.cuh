#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/linear/linear_attention.h"

// How the threads of a block hold a slab of S of linear attention, and what a row does to it.
namespace foretoken::cuda {

// A block has a slab of columns of one head's S in registers. Of a warp's lanes kKeyLanes share the
// keys of a column, the others have columns of their own. How many columns a thread has does not
// change the order of sums, only how many warps share the work: kernels of one and of the other
// give the same bits.
inline constexpr int kSlab = 32;
inline constexpr int kKeyLanes = 8;
inline constexpr int kColumnLanes = 4;

// A thread's place.
struct SlabPlace {
  int head;
  int key_head;
  int slab;         // its first column
  int column;       // the thread's first, of the head's
  int key_lane;     // of kKeyLanes
  int lane_column;  // the thread's first, of the slab's
};

template <int C>
__device__ SlabPlace place_of(const LinearShape& shape) {
  const int slabs = ceil_div(shape.value_dim, kSlab);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  SlabPlace place;
  place.head = blockIdx.x / slabs;
  place.key_head = shape.key_head_of(place.head);
  place.slab = blockIdx.x % slabs * kSlab;
  place.key_lane = lane / kColumnLanes;
  place.lane_column = (warp * kColumnLanes + lane % kColumnLanes) * C;
  place.column = place.slab + place.lane_column;
  return place;
}

// What is computed of LinearShape's forms: without the product of delta, with it, or with decays of
// each key (and with that product or not).
enum class StateForm { kPlain, kDelta, kChannels };

// What a row does to a slab, in shared memory; zero behind key_dim and value_dim, 1 without scale.
template <int kKeys, bool kChannels>
struct alignas(16) SlabRow {
  float k[kKeys];
  float q[kKeys];
  float decay[kChannels ? kKeys : 4];  // one for all, or of each key
  float v[kSlab];
  float scale[4];
};

// Sum over the key lanes, in every one of them.
__device__ inline float sum_keys(float x) {
#pragma unroll
  for (int mask = 16; mask >= kColumnLanes; mask /= 2) {
    x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, mask));
  }
  return x;
}

// The same of kKeyLanes numbers, in the same order of sums: lane i of the key lanes gets the i-th.
__device__ inline float sum_keys_of_each(float (&x)[kKeyLanes]) {
#pragma unroll
  for (int half = kKeyLanes / 2; half > 0; half /= 2) {
    const bool upper = (threadIdx.x & (half * kColumnLanes)) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float kept = upper ? x[i + half] : x[i], sent = upper ? x[i] : x[i + half];
      x[i] = __fadd_rn(kept, __shfl_xor_sync(0xffffffffu, sent, half * kColumnLanes));
    }
  }
  return x[0];
}

// x, for addresses that would fill registers if they were computed ahead of the loop around them.
__device__ inline int not_ahead(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

template <int C>
struct alignas(4 * C) Columns {
  float at[C];
};

// A thread's part of S: of its columns the keys 4 * (key_lane + 8 * j) + e, for j < R / 4 and
// e < 4, as s[4 * j + e].
template <int R, int C, StateForm kForm>
struct StatePart {
  using Row = SlabRow<R * kKeyLanes, kForm == StateForm::kChannels>;
  float s[R][C];

  static __device__ int key_of(const SlabPlace& place, int r) {
    return 4 * (place.key_lane + kKeyLanes * (r / 4)) + r % 4;
  }
  static __device__ float* memory(const LinearAttentionArgs& args, const SlabPlace& place,
                                  int slot) {
    return args.states + slot * args.shape.state_size() +
           int64_t{place.head} * args.shape.key_dim * args.shape.value_dim + place.column;
  }
  __device__ void load(const LinearAttentionArgs& args, const SlabPlace& place, int slot) {
    const float* from = memory(args, place, slot);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int key = key_of(place, r);
      Columns<C> columns = {};
      if (key < args.shape.key_dim && place.column < args.shape.value_dim) {
        columns = *reinterpret_cast<const Columns<C>*>(from + int64_t{key} * args.shape.value_dim);
      }
#pragma unroll
      for (int c = 0; c < C; ++c) s[r][c] = columns.at[c];
    }
  }
  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < C; ++c) s[r][c] = 0;
    }
  }
  __device__ void store(const LinearAttentionArgs& args, const SlabPlace& place, int slot) const {
    float* to = memory(args, place, slot);
    const int stride = not_ahead(args.shape.value_dim), keys = not_ahead(args.shape.key_dim);
    if (place.column >= args.shape.value_dim) return;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int key = key_of(place, r);
      if (key >= keys) continue;
      Columns<C> columns;
#pragma unroll
      for (int c = 0; c < C; ++c) columns.at[c] = s[r][c];
      *reinterpret_cast<Columns<C>*>(to + int64_t{key} * stride) = columns;
    }
  }
  // Four numbers of the thread's keys, from s[4 * j] on.
  static __device__ Columns<4> read(const float* from, const SlabPlace& place, int j) {
    return *reinterpret_cast<const Columns<4>*>(from + 4 * (place.key_lane + kKeyLanes * j));
  }
  // This thread's part of S^T x.
  __device__ void multiply(const float* x, const SlabPlace& place, float* out) const {
    float even[C] = {}, odd[C] = {};
#pragma unroll
    for (int j = 0; j < R / 4; ++j) {
      const Columns<4> four = read(x, place, j);
#pragma unroll
      for (int c = 0; c < C; ++c) {
        even[c] = fmaf(s[4 * j][c], four.at[0], even[c]);
        odd[c] = fmaf(s[4 * j + 1][c], four.at[1], odd[c]);
        even[c] = fmaf(s[4 * j + 2][c], four.at[2], even[c]);
        odd[c] = fmaf(s[4 * j + 3][c], four.at[3], odd[c]);
      }
    }
#pragma unroll
    for (int c = 0; c < C; ++c) out[c] = __fadd_rn(even[c], odd[c]);
  }
  __device__ void decay_keys(const float* decays, const SlabPlace& place) {
#pragma unroll
    for (int j = 0; j < R / 4; ++j) {
      const Columns<4> four = read(decays, place, j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int c = 0; c < C; ++c) s[4 * j + i][c] = __fmul_rn(s[4 * j + i][c], four.at[i]);
      }
    }
  }
  // S = decay * S + k (x) u
  __device__ void add(const float* k, const SlabPlace& place, float decay, const float (&u)[C]) {
#pragma unroll
    for (int j = 0; j < R / 4; ++j) {
      const Columns<4> four = read(k, place, j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
          float& cell = s[4 * j + i][c];
          cell =
              fmaf(four.at[i], u[c], kForm == StateForm::kChannels ? cell : __fmul_rn(cell, decay));
        }
      }
    }
  }
  // S = decay * S + k (x) u with u = scale * (v - S^T (decay * k)), or without that product. Where
  // `answers`, leaves the thread's parts of S^T q.
  __device__ void take(const Row& row, const SlabPlace& place, bool delta, bool answers,
                       float* out) {
    const float scale = row.scale[0], decay = row.decay[0];
    const Columns<C> v = *reinterpret_cast<const Columns<C>*>(row.v + place.lane_column);
    if (kForm == StateForm::kChannels) decay_keys(row.decay, place);
    float u[C];
    if (kForm != StateForm::kPlain) multiply(row.k, place, u);
    const float factor = kForm == StateForm::kChannels ? (delta ? -1.0f : 0.0f) : -decay;
#pragma unroll
    for (int c = 0; c < C; ++c) {
      u[c] = kForm == StateForm::kPlain ? v.at[c] : fmaf(factor, sum_keys(u[c]), v.at[c]);
      u[c] = __fmul_rn(u[c], scale);
    }
    add(row.k, place, decay, u);
    if (answers) multiply(row.q, place, out);
  }
};

}  // namespace foretoken::cuda
