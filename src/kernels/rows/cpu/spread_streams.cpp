#include "kernels/rows/spread_streams.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

constexpr int kSpreadPiece = 256;  // columns at once

FT_HOT void spread_piece(const float* weights, int num_streams, const float* made, int count,
                         int64_t size, float* streams) {
  float entered[kMaxHyperStreams][kSpreadPiece];
  for (int j = 0; j < num_streams; ++j) {
    for (int c = 0; c < count; ++c) entered[j][c] = streams[j * size + c];
  }
  for (int s = 0; s < num_streams; ++s) {
    float* to = streams + s * size;
    for (int c = 0; c < count; ++c) to[c] = weights[s] * made[c];
    for (int j = 0; j < num_streams; ++j) {
      const float share = weights[num_streams + j * num_streams + s];
      for (int c = 0; c < count; ++c) to[c] += share * entered[j][c];
    }
  }
}

void spread_row(const SpreadStreamsArgs& a, int64_t row) {
  const float* made = a.made + row * a.size;
  float* streams = a.streams + row * a.num_streams * a.size;
  if (a.weights == nullptr) {
    for (int s = 0; s < a.num_streams; ++s)
      std::copy_n(made, a.size, streams + int64_t{s} * a.size);
    return;
  }
  const float* weights = a.weights + row * a.num_streams * (1 + a.num_streams);
  for (int c = 0; c < a.size; c += kSpreadPiece) {
    spread_piece(weights, a.num_streams, made + c, std::min(kSpreadPiece, a.size - c), a.size,
                 streams + c);
  }
}

}  // namespace

void spread_streams(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SpreadStreamsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 2 * int64_t{a.num_streams} * a.size,
               [&](int64_t row) { spread_row(a, row); });
}

}  // namespace foretoken::cpu
