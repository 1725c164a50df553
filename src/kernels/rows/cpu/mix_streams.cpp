#include "kernels/rows/mix_streams.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/stream_math.h"

namespace foretoken::cpu {
namespace {

constexpr int kStreamPiece = 256;  // columns at once

// Columns of all streams of a row: what entered, and where they lie.
struct StreamPiece {
  float entered[kMaxStreams][kStreamPiece];
  float* at[kMaxStreams];
  int count;  // of columns
};

FT_HOT void predict_piece(const StreamPiece& piece, const float* factors, int num_streams) {
  for (int i = 0; i < num_streams; ++i) {
    float* x = piece.at[i];
    for (int j = 0; j < num_streams; ++j) {
      const float factor = factors[i * num_streams + j];
      const float* from = piece.entered[j];
      for (int c = 0; c < piece.count; ++c) x[c] += factor * from[c];
    }
  }
}

FT_HOT void correct_piece(const StreamPiece& piece, const float* factors, int num_streams,
                          const float* activated, const float* active) {
  for (int i = 0; i < num_streams; ++i) {
    float* x = piece.at[i];
    for (int c = 0; c < piece.count; ++c) x[c] += factors[i] * (activated[c] - active[c]);
  }
}

FT_HOT void write_active(const float* from, const float* scale, int count, float* out) {
  for (int c = 0; c < count; ++c) out[c] = scale != nullptr ? from[c] * scale[c] : from[c];
}

void mix_piece(const MixStreamsArgs& a, const float* factors, int64_t row, int column) {
  StreamPiece piece;
  piece.count = std::min(kStreamPiece, a.size - column);
  const int64_t at = row * a.size + column;
  for (int i = 0; i < a.num_streams; ++i) {
    piece.at[i] = a.streams + int64_t{i} * a.stream_rows * a.size + at;
    std::copy_n(piece.at[i], piece.count, piece.entered[i]);
  }
  if (a.activated == nullptr) {
    predict_piece(piece, factors, a.num_streams);
  } else {
    correct_piece(piece, factors, a.num_streams, a.activated + at, piece.entered[a.active]);
  }
  const float* scale = a.out_scale != nullptr ? a.out_scale + column : nullptr;
  write_active(piece.at[a.active], scale, piece.count, a.out + at);
}

}  // namespace

void mix_streams(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MixStreamsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, int64_t{a.num_streams} * a.size, [&](int64_t row) {
    float factors[kMaxStreams * kMaxStreams];
    const int count = num_stream_factors(a);
    const float* routed = a.routed + row * a.num_streams;
    for (int i = 0; i < count; ++i) factors[i] = stream_factor(a, routed, i);
    for (int column = 0; column < a.size; column += kStreamPiece)
      mix_piece(a, factors, row, column);
  });
}

}  // namespace foretoken::cpu
