#include "kernels/draft/cluster_logits.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

template <class T>
FT_INLINE float dot(const T* a, const T* b, int n) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes x, y;
    load(x, a + i);
    load(y, b + i);
    sum += x * y;
  }
  float total = sum_lanes(sum);
  for (; i < n; ++i) total += load_one(a + i) * load_one(b + i);
  return total;
}

// One cluster's ids.
template <class T>
FT_INLINE void multiply(const ClusterLogitsArgs& a, const T* x, const int32_t* ids, float* out) {
  const T* table = static_cast<const T*>(a.table);
  for (int i = 0; i < a.each; ++i) {
    if (ids[i] >= 0 && ids[i] < a.vocab) out[ids[i]] = dot(x, table + int64_t{ids[i]} * a.k, a.k);
  }
}

FT_HOT void multiply_f32(const ClusterLogitsArgs& a, const float* x, const int32_t* ids,
                         float* out) {
  multiply(a, x, ids, out);
}
FT_HOT void multiply_bf16(const ClusterLogitsArgs& a, const uint16_t* x, const int32_t* ids,
                          float* out) {
  multiply(a, x, ids, out);
}

// The first `top` are those with the highest scores.
std::vector<uint64_t> ranked_clusters(const ClusterLogitsArgs& a, const float* scores) {
  std::vector<uint64_t> keys(static_cast<size_t>(a.clusters));
  for (int32_t c = 0; c < a.clusters; ++c) {
    keys[static_cast<size_t>(c)] = argmax_key(sample_math::ordered_key(scores[c]), c);
  }
  std::nth_element(keys.begin(), keys.begin() + a.top - 1, keys.end(), std::greater<>());
  return keys;
}

}  // namespace

void cluster_logits(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ClusterLogitsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  for_each_row(pool, rows, a.vocab + int64_t{a.top} * a.each * a.k, [&](int64_t row) {
    float* out = a.out + row * a.vocab;
    std::fill_n(out, a.vocab, -std::numeric_limits<float>::infinity());
    const std::vector<uint64_t> ranked = ranked_clusters(a, a.scores + row * a.clusters);
    for (int32_t i = 0; i < a.top; ++i) {
      const int32_t cluster = row_of_argmax_key(ranked[static_cast<size_t>(i)]);
      const int32_t* ids = a.ids + int64_t{cluster} * a.each;
      if (a.dtype == DType::kF32) {
        multiply_f32(a, static_cast<const float*>(a.x) + row * a.k, ids, out);
      } else {
        multiply_bf16(a, static_cast<const uint16_t*>(a.x) + row * a.k, ids, out);
      }
    }
  });
}

}  // namespace foretoken::cpu
