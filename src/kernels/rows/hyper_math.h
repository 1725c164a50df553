#pragma once
#include "kernels/activation_math.h"
#include "kernels/rows/fold_streams.h"

// What becomes of the products of a row's streams, on the CPU and in CUDA alike: as in
// sample_math.h every operation rounds once.
namespace foretoken::hyper_math {

using sample_math::add;
using sample_math::div;
using sample_math::mul;
using sample_math::sub;

// How much of stream s enters.
FT_HD_INLINE float entering(const FoldStreamsArgs& a, const float* products, int s) {
  return add(activation_math::sigmoid(add(mul(products[s], a.scale[0]), a.base[s])), a.eps);
}

// How much of what is made goes to stream s.
FT_HD_INLINE float leaving(const FoldStreamsArgs& a, const float* products, int s) {
  const int i = a.num_streams + s;
  const float share =
      mul(a.gift, activation_math::sigmoid(add(mul(products[i], a.scale[1]), a.base[i])));
  return a.rounds > 0 ? share : add(share, a.eps);
}

// Divides `count` numbers, `stride` apart, by their sum.
FT_HD_INLINE void divide_by_sum(float* x, int count, int stride, float eps) {
  float sum = x[0];
  for (int i = 1; i < count; ++i) sum = add(sum, x[i * stride]);
  sum = add(sum, eps);
  for (int i = 0; i < count; ++i) x[i * stride] = div(x[i * stride], sum);
}

// Row j of the mixing matrix before it is balanced.
FT_HD_INLINE void soften_row(const FoldStreamsArgs& a, const float* products, int j, float* row) {
  const int count = a.num_streams, first = 2 * count + j * count;
  float largest = 0, sum = 0;
  for (int s = 0; s < count; ++s) {
    row[s] = add(mul(products[first + s], a.scale[2]), a.base[first + s]);
    largest = s == 0 || row[s] > largest ? row[s] : largest;
  }
  for (int s = 0; s < count; ++s) {
    row[s] = sample_math::exp_nonpositive(sub(row[s], largest));
    sum = add(sum, row[s]);
  }
  for (int s = 0; s < count; ++s) row[s] = add(div(row[s], sum), a.eps);
}

// out [S], then mix [S, S], of the products of one row (Sinkhorn and Knopp 1967).
FT_HD_INLINE void mixing_weights(const FoldStreamsArgs& a, const float* products, float* weights) {
  const int count = a.num_streams;
  float mix[kMaxHyperStreams * kMaxHyperStreams];
  for (int i = 0; a.rounds == 0 && i < count * count; ++i) mix[i] = i % (count + 1) == 0 ? 1 : 0;
  for (int j = 0; a.rounds > 0 && j < count; ++j) soften_row(a, products, j, mix + j * count);
  for (int round = 0; round < a.rounds; ++round) {
    for (int j = 0; round > 0 && j < count; ++j) divide_by_sum(mix + j * count, count, 1, a.eps);
    for (int s = 0; s < count; ++s) divide_by_sum(mix + s, count, count, a.eps);
  }
  for (int s = 0; s < count; ++s) weights[s] = leaving(a, products, s);
  for (int i = 0; i < count * count; ++i) weights[count + i] = mix[i];
}

}  // namespace foretoken::hyper_math
