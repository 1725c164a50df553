#include <immintrin.h>

#include "kernels/gemm/cpu/bf16_kernels.h"

namespace foretoken::cpu {
namespace {

#define FT_BF16_INLINE inline __attribute__((always_inline))

constexpr int kMaxRows = 2;          // whose sums, two tiles wide, leave registers for weights
constexpr int64_t kStepsAtOnce = 8;  // 32 KiB of weights stay in the nearest cache for all rows
constexpr int kPieceLength = static_cast<int>(kStepsAtOnce) * kBf16Step;
constexpr int kWidth = 8;  // columns of a vector
constexpr int64_t kTileElements = kBf16Step * kBf16Lanes;

// Some steps of k of a block.
struct Piece {
  const Bf16Block& block;
  int64_t first_step;
  int64_t num_steps;
  const char* ahead;  // what to fetch from memory meanwhile, `ahead_lines` at each step
  int ahead_lines;

  // Of a tile, `block.num_tiles()` tiles from one step to the next.
  const uint16_t* weights(int tile) const {
    return block.data + (first_step * block.num_tiles() + tile) * kTileElements;
  }
};

// x as float: bfloat16 is the upper half of one.
template <int kRows>
FT_BF16_INLINE void widen(const uint16_t* x, int64_t stride, int count,
                          float (&wide)[kRows][kPieceLength]) {
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < count; i += kWidth) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + r * stride + i));
      const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
      _mm256_store_ps(&wide[r][i], _mm256_castsi256_ps(bits));
    }
  }
}

// Lanes of the vector that begins at column `col` which the block has.
FT_BF16_INLINE __m256i mask_of(const Bf16Block& block, int col) {
  const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(block.cols - col), place);
}

// One of two neighbours of k: the one below, or the one above.
template <int kAbove>
FT_BF16_INLINE __m256 half_of(const uint16_t* weights) {
  const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
  if constexpr (kAbove != 0) {
    return _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(int(0xffff0000u))));
  }
  return _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
}

template <int kAbove, int kRows, int kVectors>
FT_BF16_INLINE void add_half(const uint16_t* weights, const float (&x)[kRows][kPieceLength],
                             int64_t at, __m256 (&sums)[kRows][kVectors]) {
  __m256 one[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) one[r] = _mm256_broadcast_ss(&x[r][at + kAbove]);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const __m256 w = half_of<kAbove>(weights + v / 2 * kTileElements + v % 2 * 2 * kWidth);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) sums[r][v] = _mm256_fmadd_ps(one[r], w, sums[r][v]);
  }
}

// Tiles [tile, tile + kTiles) of a piece.
template <int kRows, int kTiles>
void multiply_tiles(const Piece& piece, int tile, const float (&x)[kRows][kPieceLength], float* y,
                    int64_t y_stride) {
  constexpr int kVectors = 2 * kTiles;
  __m256 sums[kRows][kVectors];
  __m256i masks[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int col = tile * kBf16Lanes + v * kWidth;
    masks[v] = mask_of(piece.block, col);
    for (int r = 0; r < kRows; ++r) {
      sums[r][v] = piece.first_step == 0 ? _mm256_setzero_ps()
                                         : _mm256_maskload_ps(y + r * y_stride + col, masks[v]);
    }
  }
  const uint16_t* weights = piece.weights(tile);
  const char* ahead = piece.ahead;
  for (int64_t s = 0; s < piece.num_steps; ++s) {
    for (int i = 0; i < piece.ahead_lines; ++i, ahead += 64) _mm_prefetch(ahead, _MM_HINT_T0);
    for (int i = 0; i < kBf16Step; i += 2) {
      add_half<0>(weights + i * kBf16Lanes, x, s * kBf16Step + i, sums);
      add_half<1>(weights + i * kBf16Lanes, x, s * kBf16Step + i, sums);
    }
    weights += piece.block.num_tiles() * kTileElements;
  }
  for (int v = 0; v < kVectors; ++v) {
    float* to = y + tile * kBf16Lanes + v * kWidth;
    for (int r = 0; r < kRows; ++r) _mm256_maskstore_ps(to + r * y_stride, masks[v], sums[r][v]);
  }
}

// Returns the tiles that it took: few rows take many at once, so that enough chains of sums run.
template <int kRows>
int multiply_some(const Piece& piece, int tile, const float (&x)[kRows][kPieceLength], float* y,
                  int64_t y_stride) {
  const int left = piece.block.num_tiles() - tile;
  if constexpr (kRows == 1) {
    if (left >= 4) return multiply_tiles<kRows, 4>(piece, tile, x, y, y_stride), 4;
  }
  if (left >= 2) return multiply_tiles<kRows, 2>(piece, tile, x, y, y_stride), 2;
  return multiply_tiles<kRows, 1>(piece, tile, x, y, y_stride), 1;
}

template <int kRows>
void multiply_rows(Piece& piece, const Bf16Rows& rows, int first) {
  alignas(64) float wide[kRows][kPieceLength];
  widen<kRows>(rows.x + first * rows.x_stride + piece.first_step * kBf16Step, rows.x_stride,
               static_cast<int>(piece.num_steps) * kBf16Step, wide);
  for (int tile = 0; tile < piece.block.num_tiles();) {
    tile += multiply_some<kRows>(piece, tile, wide, rows.y + first * rows.y_stride, rows.y_stride);
    piece.ahead += piece.ahead_lines * 64 * piece.num_steps;
  }
}

void multiply_rows(Piece& piece, const Bf16Rows& rows, int first, int count) {
  switch (count) {
    case 1:
      return multiply_rows<1>(piece, rows, first);
    default:
      return multiply_rows<2>(piece, rows, first);
  }
}

// Groups of rows of nearly equal size share the fetching of what comes next.
void multiply(const Bf16Block& block, const Bf16Rows& rows) {
  const int groups = (rows.count + kMaxRows - 1) / kMaxRows;
  const int tiles = block.num_tiles();
  const int calls = rows.count == 1 && tiles >= 4 ? 1 : groups * ((tiles + 1) / 2);
  for (int64_t step = 0; step < block.num_steps; step += kStepsAtOnce) {
    const int64_t left = block.num_steps - step;
    Piece piece{block, step, left < kStepsAtOnce ? left : kStepsAtOnce, nullptr,
                (16 * tiles + calls - 1) / calls};
    piece.ahead = reinterpret_cast<const char*>(piece.weights(0)) +
                  (groups == 1 ? 2 : kStepsAtOnce) * tiles * 2 * kTileElements;
    for (int g = 0, first = 0; g < groups; ++g) {
      const int end = rows.count * (g + 1) / groups;
      multiply_rows(piece, rows, first, end - first);
      first = end;
    }
  }
}

}  // namespace

extern const Bf16Kernels kAvx2Bf16Kernels;
constexpr Bf16Kernels kAvx2Bf16Kernels{"avx2", multiply};

}  // namespace foretoken::cpu
