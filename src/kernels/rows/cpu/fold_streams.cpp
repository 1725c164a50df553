#include "kernels/rows/fold_streams.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/hyper_math.h"

namespace foretoken::cpu {
namespace {

constexpr int kMaxHyperWeights = num_hyper_weights(kMaxHyperStreams, StreamWeights::kMix);

FT_HOT float hyper_product(const float* a, const float* b, int64_t size) {
  Lanes sum = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes x, y;
    load(x, a + i);
    load(y, b + i);
    sum += x * y;
  }
  float total = sum_lanes(sum);
  for (; i < size; ++i) total += a[i] * b[i];
  return total;
}

FT_HOT void add_stream(const float* stream, float share, int size, bool first, float* folded) {
  for (int c = 0; c < size; ++c) {
    const float part = share * stream[c];
    folded[c] = first ? part : folded[c] + part;
  }
}

void fold_row(const FoldStreamsArgs& a, int64_t row) {
  const int64_t width = int64_t{a.num_streams} * a.size;
  const float* streams = a.streams + row * width;
  const float mean = hyper_product(streams, streams, width) / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + a.norm_eps);
  const int made = num_hyper_weights(a.num_streams, a.learned());
  float products[kMaxHyperWeights];
  for (int i = 0; i < made; ++i) {
    products[i] = hyper_product(streams, a.fn + i * width, width) * factor;
  }
  for (int s = 0; s < a.num_streams; ++s) {
    add_stream(streams + int64_t{s} * a.size, hyper_math::entering(a, products, s), a.size, s == 0,
               a.folded + row * a.size);
  }
  if (a.weights == nullptr) return;
  const int each = a.num_streams * (1 + a.num_streams);
  hyper_math::mixing_weights(a, products, a.weights + row * each);
}

}  // namespace

void fold_streams(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const FoldStreamsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t cost = int64_t{a.num_streams} * a.size * 8;
  for_each_row(pool, rows, cost, [&](int64_t row) { fold_row(a, row); });
}

}  // namespace foretoken::cpu
