#pragma once
#include <immintrin.h>

#include "kernels/gemm/cpu/bf16_kernels.h"

#define FT_BF16_INLINE inline __attribute__((always_inline))

// A Bf16Product in vectors of AVX-512, for the files that differ in how they add: each is compiled
// for instructions of its own, so nothing here may be shared between them.
namespace foretoken::cpu {
namespace {

constexpr int kMaxRows = 6;       // whose sums fit the registers
constexpr int64_t kMaxSteps = 8;  // of a piece
constexpr int64_t kTileElements = kBf16Step * kBf16Lanes;

// Some steps of k of a block.
struct Piece {
  const uint16_t* weights;
  int64_t first_step;
  int64_t num_steps;
  const char* ahead;  // what to fetch from memory meanwhile, `ahead_lines` at each step
  int ahead_lines;
  __mmask16 last_cols;
};

template <int kTiles>
FT_BF16_INLINE __mmask16 mask_of(const Piece& piece, int tile) {
  return tile == kTiles - 1 ? piece.last_cols : static_cast<__mmask16>(0xffff);
}

// Fetches what comes next, a share of it at each step.
FT_BF16_INLINE void fetch_ahead(const Piece& piece, int64_t step) {
  const char* ahead = piece.ahead + step * piece.ahead_lines * 64;
  for (int i = 0; i < piece.ahead_lines; ++i) _mm_prefetch(ahead + i * 64, _MM_HINT_T0);
}

// Adder::add<kRows, kTiles>(piece, x, stride, sums) adds the piece times rows of x, `stride` apart.
template <class Adder, int kRows, int kTiles>
void multiply_piece(const Piece& piece, const Bf16Rows& rows, int first) {
  __m512 sums[kRows][kTiles];
  float* y = rows.y + first * rows.y_stride;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) {
      sums[r][t] = piece.first_step == 0
                       ? _mm512_setzero_ps()
                       : _mm512_maskz_loadu_ps(mask_of<kTiles>(piece, t),
                                               y + r * rows.y_stride + t * kBf16Lanes);
    }
  }
  const uint16_t* x = rows.x + first * rows.x_stride + piece.first_step * kBf16Step;
  Adder::template add<kRows, kTiles>(piece, x, rows.x_stride, sums);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) {
      _mm512_mask_storeu_ps(y + r * rows.y_stride + t * kBf16Lanes, mask_of<kTiles>(piece, t),
                            sums[r][t]);
    }
  }
}

template <class Adder, int kTiles>
void multiply_rows(const Piece& piece, const Bf16Rows& rows, int first, int count) {
  switch (count) {
    case 1:
      return multiply_piece<Adder, 1, kTiles>(piece, rows, first);
    case 2:
      return multiply_piece<Adder, 2, kTiles>(piece, rows, first);
    case 3:
      return multiply_piece<Adder, 3, kTiles>(piece, rows, first);
    case 4:
      return multiply_piece<Adder, 4, kTiles>(piece, rows, first);
    case 5:
      return multiply_piece<Adder, 5, kTiles>(piece, rows, first);
    default:
      return multiply_piece<Adder, 6, kTiles>(piece, rows, first);
  }
}

// Steps of k before the next group of rows has its turn. Of a few groups 16 KiB of weights and as
// much that is fetched meanwhile stay in the nearest cache; many groups take long between fetches
// and gain more from longer pieces.
constexpr int64_t steps_at_once(int groups) {
  return groups == 1 || groups > 8 ? kMaxSteps : kMaxSteps / 2;
}

// Groups of rows of nearly equal size share the fetching of what comes next.
template <class Adder, int kTiles>
void multiply_block(const Bf16Block& block, const Bf16Rows& rows) {
  const int groups = (rows.count + kMaxRows - 1) / kMaxRows;
  const int last = block.cols - (kTiles - 1) * kBf16Lanes;
  const int64_t at_once = steps_at_once(groups);
  Piece piece{};
  piece.last_cols = static_cast<__mmask16>((1u << last) - 1);
  for (int64_t step = 0; step < block.num_steps; step += at_once) {
    const int64_t left = block.num_steps - step;
    piece.first_step = step;
    piece.num_steps = left < at_once ? left : at_once;
    piece.weights = block.data + step * kTiles * kTileElements;
    piece.ahead_lines = (16 * kTiles + groups - 1) / groups;
    piece.ahead = reinterpret_cast<const char*>(piece.weights) +
                  (groups == 1 ? 2 : at_once) * kTiles * 2 * kTileElements;
    for (int g = 0, first = 0; g < groups; ++g) {
      const int end = rows.count * (g + 1) / groups;
      multiply_rows<Adder, kTiles>(piece, rows, first, end - first);
      piece.ahead += piece.ahead_lines * 64 * piece.num_steps;
      first = end;
    }
  }
}

template <class Adder>
void multiply(const Bf16Block& block, const Bf16Rows& rows) {
  switch (block.num_tiles()) {
    case 1:
      return multiply_block<Adder, 1>(block, rows);
    case 2:
      return multiply_block<Adder, 2>(block, rows);
    case 3:
      return multiply_block<Adder, 3>(block, rows);
    default:
      return multiply_block<Adder, 4>(block, rows);
  }
}

}  // namespace
}  // namespace foretoken::cpu
