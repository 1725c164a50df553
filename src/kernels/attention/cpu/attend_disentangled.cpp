#include "kernels/attention/attend_disentangled.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

constexpr int kPlacedKeys = 64;

// One head of a row while it goes through the keys.
struct DisentangledHead {
  const AttendDisentangledArgs& a;
  int row;
  int head;
  DisentangledSight sight;
  alignas(32) float out[kDisentangledDim] = {};
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;

  FT_INLINE const float* part(int of_row, int kind) const {
    const int64_t width = int64_t{a.num_heads} * a.head_dim;
    return a.qkv + (int64_t{of_row} * 3 + kind) * width + int64_t{head} * a.head_dim;
  }
};

// q . (k + place_key) + k . place_query, in eight partial sums.
FT_INLINE float disentangled_score(const float* q, const float* k, const float* place_key,
                                   const float* place_query, int dim) {
  Octet sum = {};
  for (int c = 0; c < dim; c += kOctet) {
    Octet own, key, to_key, to_query;
    load(own, q + c);
    load(key, k + c);
    load(to_key, place_key + c);
    load(to_query, place_query + c);
    sum += own * (key + to_key) + key * to_query;
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

FT_INLINE void take_keys(DisentangledHead& head, int begin, int count) {
  const AttendDisentangledArgs& a = head.a;
  const int dim = a.head_dim, position = a.positions[head.row];
  const float* q = head.part(head.row, 0);
  float scores[kPlacedKeys];
  float largest = head.largest;
  for (int i = 0; i < count; ++i) {
    const int place = disentangled_place(a, position - (head.sight.position + begin + i));
    const int64_t at = (int64_t{head.head} * a.num_places + place) * dim;
    const float* key = head.part(head.sight.first + begin + i, 1);
    scores[i] = disentangled_score(q, key, a.place_keys + at, a.place_queries + at, dim) * a.scale;
    largest = std::max(largest, scores[i]);
  }
  const float shrink = head.sum > 0 ? sample_math::exp_nonpositive(head.largest - largest) : 0;
  head.largest = largest;
  head.sum *= shrink;
  for (int c = 0; c < dim; ++c) head.out[c] *= shrink;
  for (int i = 0; i < count; ++i) {
    const float weight = sample_math::exp_nonpositive(scores[i] - largest);
    const float* value = head.part(head.sight.first + begin + i, 2);
    head.sum += weight;
    for (int c = 0; c < dim; c += kOctet) {
      Octet out, entry;
      load(out, head.out + c);
      load(entry, value + c);
      store(head.out + c, out + weight * entry);
    }
  }
}

FT_HOT void take_all_keys(DisentangledHead& head) {
  for (int begin = 0; begin < head.sight.count; begin += kPlacedKeys) {
    take_keys(head, begin, std::min(kPlacedKeys, head.sight.count - begin));
  }
}

void attend_place(const AttendDisentangledArgs& a, int row, int h, int num_rows) {
  DisentangledHead head{a, row, h, disentangled_sight(a, row, num_rows)};
  take_all_keys(head);
  const int64_t at = (int64_t{row} * a.num_heads + h) * a.head_dim;
  for (int c = 0; c < a.head_dim; ++c) {
    const float value = head.out[c] / head.sum;
    if (a.dtype == DType::kF32) {
      static_cast<float*>(a.out)[at + c] = value;
    } else {
      store_one(static_cast<uint16_t*>(a.out) + at + c, value);
    }
  }
}

}  // namespace

void attend_disentangled(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const AttendDisentangledArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, int64_t{rows} * a.num_heads, 64 * int64_t{a.head_dim}, [&](int64_t task) {
    attend_place(a, static_cast<int>(task / a.num_heads), static_cast<int>(task % a.num_heads),
                 rows);
  });
}

}  // namespace foretoken::cpu
