#pragma once
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"

// The softmax of the kernels that give each warp whole query rows, in the layout of the tensor
// cores' products.
namespace foretoken::cuda {

// How a block works on heads of Dim elements: in groups of kGroupRows rows, each the work of one
// warp, or of two that compute the same scores and hold a half of the values each.
template <int Dim>
struct Shape {
  static constexpr int kValueParts = Dim > 128 ? 2 : 1;
  static constexpr int kValueDim = Dim / kValueParts;
  static constexpr int kChunks = Dim / 8;  // of 16 bytes
  static_assert(Dim % 16 == 0 && kValueDim % 16 == 0 && kChunks <= 32);

  __device__ static int group() { return threadIdx.x / 32 / kValueParts; }
  __device__ static int first_value() { return threadIdx.x / 32 % kValueParts * kValueDim; }
};

// Of a group's 16 rows over some KV positions, in the layout of the products: this lane has rows
// lane / 4 and lane / 4 + 8.
struct RowSums {
  float highest[2] = {-INFINITY, -INFINITY};  // what weights are relative to: see `rebase`
  float weights[2] = {};  // this lane's part within a split, the whole sum after `finish`
};
// Their result: in each block of 8 dimensions of the warp's values this lane has the two from
// 2 (lane % 4) on.
template <int Dim>
struct Partial : RowSums {
  float values[Shape<Dim>::kValueDim / 8][4] = {};
};

// What a group's rows may see.
struct RowLimits {
  int first[2];
  int last[2];  // -1: no such row
  int group_last;
  int common_first;  // KV positions that all rows see
  int common_last;

  // Whether every row sees all positions of the unit from `begin` on.
  __device__ bool see_all(int begin) const {
    return begin >= common_first && begin + kUnit - 1 <= common_last;
  }
};

template <int Dim>
__device__ RowLimits row_limits(const AttentionArgs& args, const QueryTile& tile) {
  RowLimits limits;
  const int begin = Shape<Dim>::group() * kGroupRows;
  limits.group_last = -1;
  limits.common_first = 0;
  limits.common_last = INT32_MAX;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int token = (begin + threadIdx.x % 32 / 4 + i * 8) / tile.heads;
    const bool valid = token < tile.num_tokens;
    limits.last[i] = valid ? last_seen(args, tile.first_row + token, tile.position + token) : -1;
    limits.first[i] = valid ? first_visible(args, tile.position + token) : 0;
    limits.group_last = max(limits.group_last, limits.last[i]);
    if (!valid) continue;
    limits.common_first = max(limits.common_first, limits.first[i]);
    limits.common_last = min(limits.common_last, limits.last[i]);
  }
  limits.group_last = __reduce_max_sync(0xffffffffu, limits.group_last);
  limits.common_first = __reduce_max_sync(0xffffffffu, limits.common_first);
  limits.common_last = __reduce_min_sync(0xffffffffu, limits.common_last);
  return limits;
}

// Products of the group's 16 rows with the tile's keys, and then their scores, in the same layout.
template <int Dim>
using Scores = float[kUnit / 8][4];

template <int Dim>
__device__ void cap_products(Scores<Dim>& products, const Scoring& scoring) {
#pragma unroll
  for (int n = 0; n < kUnit / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) products[n][i] = capped(scoring, products[n][i]);
  }
}

// Positions that a row does not see get no weight. begin: the first of Blocks times 8.
template <int Halves, int Blocks>
__device__ void mask_products(float (&products)[Blocks][4], int begin, const RowLimits& limits) {
  const int column = begin + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < Halves; ++i) {
#pragma unroll
    for (int n = 0; n < Blocks; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int position = column + n * 8 + j;
        const bool visible = position >= limits.first[i] && position <= limits.last[i];
        if (!visible) products[n][i * 2 + j] = -INFINITY;
      }
    }
  }
}

// Adds the weights of a unit to those of the split so far, in a fixed order.
template <int Halves>
__device__ void add_weights(RowSums& part, const float (&weights)[kUnit / 8][4],
                            const float (&keeps)[2]) {
#pragma unroll
  for (int i = 0; i < Halves; ++i) {
    float sums[2] = {};  // of 32 positions each
#pragma unroll
    for (int n = 0; n < kUnit / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) sums[n / 4] = __fadd_rn(sums[n / 4], weights[n][i * 2 + j]);
    }
    part.weights[i] = fmaf(part.weights[i], keeps[i], __fadd_rn(sums[0], sums[1]));
  }
}

// The score that the weights of a row half are relative to: it follows the highest one only where
// that is more than kSlack above, since sums then need be rescaled seldom. top: the highest score
// of the unit. keep: what the sums so far are to be multiplied by.
__device__ inline float rebase(float before, float top, float& keep) {
  constexpr float kSlack = 8;  // weights of up to 2^8
  const bool rises = top > __fadd_rn(before, kSlack);
  keep = rises ? exp2_approx(__fsub_rn(before, top)) : 1.0f;
  return rises ? top : before;
}

// Turns the products of row half i of a unit into weights. top: the highest of the unit's scores,
// which are products times `scale`.
template <int Blocks>
__device__ void weigh_scores(RowSums& part, float (&products)[Blocks][4], float (&keeps)[2], int i,
                             float top, float scale) {
  part.highest[i] = rebase(part.highest[i], top, keeps[i]);
  const float base = part.highest[i] == -INFINITY ? 0.0f : part.highest[i];
#pragma unroll
  for (int n = 0; n < Blocks; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float& product = products[n][i * 2 + j];
      product = exp2_approx(fmaf(product, scale, -base));
    }
  }
}

// The highest product of row half i of a unit, in this lane.
__device__ inline float highest_product(const float (&products)[kUnit / 8][4], int i) {
  float tops[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int n = 0; n < kUnit / 8; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) tops[j] = fmaxf(tops[j], products[n][i * 2 + j]);
  }
  return fmaxf(tops[0], tops[1]);
}

// The highest score of a row whose four lanes have these highest products. scale > 0.
__device__ inline float highest_score(float product, float scale) {
  product = fmaxf(product, __shfl_xor_sync(0xffffffffu, product, 1));
  product = fmaxf(product, __shfl_xor_sync(0xffffffffu, product, 2));
  return __fmul_rn(product, scale);
}

// Turns products into weights relative to RowSums::highest, by which the values summed so far are
// then to be rescaled: see `rescale_values`. A tile of which a row sees nothing leaves that row's
// bits as they are. Halves: 1 leaves out rows 8 to 15. begin: the first position. scale > 0.
template <int Dim, int Halves = 2>
__device__ void weigh_products(RowSums& part, Scores<Dim>& products, float (&keeps)[2], int begin,
                               const RowLimits& limits, float scale) {
  if (!limits.see_all(begin)) mask_products<Halves>(products, begin, limits);
#pragma unroll
  for (int i = 0; i < Halves; ++i) {
    const float top = highest_score(highest_product(products, i), scale);
    weigh_scores(part, products, keeps, i, top, scale);
  }
  add_weights<Halves>(part, products, keeps);
}

// Whether sums are to be rescaled at all.
__device__ inline bool rescales(const float (&keeps)[2]) {
  return keeps[0] != 1.0f || keeps[1] != 1.0f;
}

template <int Dim, int Halves = 2>
__device__ void rescale_values(Partial<Dim>& part, const float (&keeps)[2]) {
#pragma unroll
  for (int i = 0; i < Halves; ++i) {
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      part.values[d][i * 2] = __fmul_rn(part.values[d][i * 2], keeps[i]);
      part.values[d][i * 2 + 1] = __fmul_rn(part.values[d][i * 2 + 1], keeps[i]);
    }
  }
}

template <int Dim, int Halves = 2>
__device__ void apply_softmax(Partial<Dim>& part, Scores<Dim>& products, int begin,
                              const RowLimits& limits, float scale) {
  float keeps[2];
  weigh_products<Dim, Halves>(part, products, keeps, begin, limits, scale);
  rescale_values<Dim, Halves>(part, keeps);
}

// Ends a split: the lanes of a row add up their parts of the sum of weights.
__device__ inline void finish(RowSums& part) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    part.weights[i] = __fadd_rn(part.weights[i], __shfl_xor_sync(0xffffffffu, part.weights[i], 1));
    part.weights[i] = __fadd_rn(part.weights[i], __shfl_xor_sync(0xffffffffu, part.weights[i], 2));
  }
}

template <int Dim>
__device__ void merge_into(Partial<Dim>& running, const Partial<Dim>& partial) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const MergeScales scales = merge_scales(running.highest[i], partial.highest[i]);
    running.highest[i] = scales.highest;
    running.weights[i] = merge(running.weights[i], partial.weights[i], scales);
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      float(&to)[4] = running.values[d];
      to[i * 2] = merge(to[i * 2], partial.values[d][i * 2], scales);
      to[i * 2 + 1] = merge(to[i * 2 + 1], partial.values[d][i * 2 + 1], scales);
    }
  }
}

// Calls take(dimension, a, b) for the pairs of neighbouring dimensions that this lane has of row
// half i. Codes: the dimensions stand in the order of attention_codes.cuh.
template <bool Codes, int Blocks, class Take>
__device__ void for_each_pair(const float (&values)[Blocks][4], int i, const Take& take) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int d = 0; d < Blocks; ++d) {
    if constexpr (Codes) {
      const int half = d % 2;
      take(d / 2 * 16 + t * 4 + half * 2, values[d - half][i * 2 + half],
           values[d - half + 1][i * 2 + half]);
    } else {
      take(d * 8 + t * 2, values[d][i * 2], values[d][i * 2 + 1]);
    }
  }
}

// Calls store(i, token row, query head) for this lane's rows that exist.
template <int Dim, class Store>
__device__ void for_each_row(const QueryTile& tile, const Store& store) {
  const int begin = Shape<Dim>::group() * kGroupRows + threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int m = begin + i * 8;
    if (m / tile.heads < tile.num_tokens) {
      store(i, tile.first_row + m / tile.heads, tile.first_head + m % tile.heads);
    }
  }
}

template <int Dim, bool Codes>
__device__ void store_partial(const AttentionArgs& args, const QueryTile& tile, int max_splits,
                              int split, const Partial<Dim>& part) {
  for_each_row<Dim>(tile, [&](int i, int row, int head) {
    const int64_t index = partial_index(args, max_splits, row, head, split);
    if (threadIdx.x % 4 == 0 && Shape<Dim>::first_value() == 0) {
      *partial_state(args, max_splits, index) = make_float2(part.highest[i], part.weights[i]);
    }
    float* to = partial_values(args, index) + Shape<Dim>::first_value();
    for_each_pair<Codes>(part.values, i, [&](int d, float a, float b) {
      *reinterpret_cast<float2*>(to + d) = make_float2(a, b);
    });
  });
}

// Lane q of four has word q of each of four chunks of 16 bytes; it gets chunk q.
__device__ inline uint4 gather_chunk(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
  const bool odd = threadIdx.x % 2 != 0;
  const bool high = threadIdx.x / 2 % 2 != 0;
  const uint32_t near0 = __shfl_xor_sync(0xffffffffu, odd ? w0 : w1, 1);
  const uint32_t near1 = __shfl_xor_sync(0xffffffffu, odd ? w2 : w3, 1);
  const uint2 first = odd ? make_uint2(near0, w1) : make_uint2(w0, near0);
  const uint2 second = odd ? make_uint2(near1, w3) : make_uint2(w2, near1);
  const uint2 sent = high ? first : second;
  const uint2 far{__shfl_xor_sync(0xffffffffu, sent.x, 2), __shfl_xor_sync(0xffffffffu, sent.y, 2)};
  return high ? make_uint4(far.x, far.y, second.x, second.y)
              : make_uint4(first.x, first.y, far.x, far.y);
}

// Values of row i, divided by `weights`, as bfloat16 from `to` on, for the rows with one.
template <int Dim>
__device__ void store_row(const Partial<Dim>& part, int i, float weights, __nv_bfloat16* to) {
  constexpr int kBlocks = Shape<Dim>::kValueDim / 8;
  const int q = threadIdx.x % 4;
  const float inverse = inverse_of(weights);
  uint32_t words[kBlocks];
#pragma unroll
  for (int d = 0; d < kBlocks; ++d) {
    words[d] = pack_bf16(__fmul_rn(part.values[d][i * 2], inverse),
                         __fmul_rn(part.values[d][i * 2 + 1], inverse));
  }
#pragma unroll
  for (int d = 0; d + 4 <= kBlocks; d += 4) {
    const uint4 chunk = gather_chunk(words[d], words[d + 1], words[d + 2], words[d + 3]);
    if (to != nullptr) *reinterpret_cast<uint4*>(to + (d + q) * 8) = chunk;
  }
#pragma unroll
  for (int d = kBlocks / 4 * 4; d < kBlocks; ++d) {
    if (to != nullptr) *reinterpret_cast<uint32_t*>(to + d * 8 + q * 2) = words[d];
  }
}

template <int Dim>
__device__ void store_result(const AttentionArgs& args, const QueryTile& tile,
                             const Partial<Dim>& part) {
  __nv_bfloat16* places[2] = {};
  float weights[2] = {part.weights[0], part.weights[1]};
  for_each_row<Dim>(tile, [&](int i, int row, int head) {
    weights[i] = with_sink(args, head, part.highest[i], part.weights[i]);
    places[i] = static_cast<__nv_bfloat16*>(args.out) +
                (int64_t{row} * args.num_heads + head) * Dim + Shape<Dim>::first_value();
  });
#pragma unroll
  for (int i = 0; i < 2; ++i) store_row<Dim>(part, i, weights[i], places[i]);
}

// The same over codes of KvFormat::kFp8, in the order of attention_codes.cuh.
template <int Dim>
__device__ void store_result_of_codes(const AttentionArgs& args, const QueryTile& tile,
                                      const Partial<Dim>& part) {
  const float scale = value_scale(args.kv, head_of_scales(args, tile.first_row, tile.kv_head));
  for_each_row<Dim>(tile, [&](int i, int row, int head) {
    const float inverse = inverse_of(with_sink(args, head, part.highest[i], part.weights[i]));
    auto* to = static_cast<__nv_bfloat16*>(args.out) +
               (int64_t{row} * args.num_heads + head) * Dim + Shape<Dim>::first_value();
    for_each_pair<true>(part.values, i, [&](int d, float a, float b) {
      *reinterpret_cast<uint32_t*>(to + d) = pack_bf16(__fmul_rn(__fmul_rn(a, inverse), scale),
                                                       __fmul_rn(__fmul_rn(b, inverse), scale));
    });
  });
}

}  // namespace foretoken::cuda
