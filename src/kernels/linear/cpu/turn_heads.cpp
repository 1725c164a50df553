#include "kernels/linear/turn_heads.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/cpu/rotation.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT void norm_and_turn(float* x, const float* weight, float eps, const Rotation& rotation,
                          int half, int dim) {
  float head[kMaxHeadDim];
  if (weight == nullptr) {
    std::copy_n(x, dim, head);
  } else {
    const float mean = sum_of_squares(x, dim) / static_cast<float>(dim);
    const float factor = 1.0f / std::sqrt(mean + eps);
    for (int i = 0; i < dim; ++i) head[i] = x[i] * factor * weight[i];
  }
  rotate(head, rotation, half, dim, x);
}

}  // namespace

void turn_heads(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const TurnHeadsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int heads = a.num_queries + a.num_keys;
  const int half = a.inv_freq == nullptr ? 0 : a.rotary_dim / 2;
  for_each_row(pool, rows, 2 * int64_t{heads} * a.head_dim, [&](int64_t row) {
    Rotation rotation;
    make_rotation({a.inv_freq, half, a.scaling, 0, {}}, a.positions[row], &rotation);
    float* x = a.x + row * a.stride;
    for (int head = 0; head < heads; ++head, x += a.head_dim) {
      const float* weight = head < a.num_queries ? a.q_norm : a.k_norm;
      norm_and_turn(x, weight, a.eps, rotation, half, a.head_dim);
    }
  });
}

}  // namespace foretoken::cpu
