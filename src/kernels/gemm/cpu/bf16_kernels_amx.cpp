#include <immintrin.h>

#include "kernels/gemm/cpu/bf16_kernels.h"

namespace foretoken::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t kTileElements = kBf16Step * kBf16Lanes;
constexpr int64_t kTileBytesPerRow = 64;
constexpr int kAheadBytes = 1 << 10;

// The processor's layout of a tile configuration.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 to 3 hold sums, 4 and 5 rows of x, 6 and 7 weights. `low` and `high`: the rows of x of
// tile 4 and of tile 5, whose sums are in tiles 2 and 3 then.
void configure(int low, int high) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.bytes_per_row[tile] = kTileBytesPerRow;
    config.rows[tile] = static_cast<uint8_t>(low);
  }
  config.rows[2] = config.rows[3] = config.rows[5] = static_cast<uint8_t>(high > 0 ? high : low);
  config.rows[6] = config.rows[7] = kTileRows;
  // The intrinsic tells the compiler of eight bytes only.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

inline __attribute__((always_inline)) void fetch(const uint16_t* weights, int lines) {
  const char* ahead = reinterpret_cast<const char*>(weights) + kAheadBytes;
  for (int i = 0; i < lines; ++i) _mm_prefetch(ahead + 64 * i, _MM_HINT_T0);
}

// Sums of a tile to y; of the last columns through memory of their own.
struct Output {
  float* y;
  int64_t stride;
  int cols;

  float* place(float* spare, int tile) const {
    return cols - tile * kBf16Lanes < kBf16Lanes ? spare : y + tile * kBf16Lanes;
  }
  int64_t bytes(int tile) const {
    return 4 * (cols - tile * kBf16Lanes < kBf16Lanes ? int64_t{kBf16Lanes} : stride);
  }
  void finish(const float* spare, int tile, int rows) const {
    const int left = cols - tile * kBf16Lanes;
    if (left >= kBf16Lanes) return;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < left; ++c) {
        y[r * stride + tile * kBf16Lanes + c] = spare[r * kBf16Lanes + c];
      }
    }
  }
};

#define FT_STORE_TILE(number, tile)                                                  \
  do {                                                                               \
    alignas(64) float spare[kTileRows * kBf16Lanes];                                 \
    _tile_stored(number, out.place(spare, tile), static_cast<int>(out.bytes(tile))); \
    out.finish(spare, tile, rows);                                                   \
  } while (false)

// At most sixteen rows: the weights pass once, all columns of a step together.
template <int kTiles>
void multiply_few(const Bf16Block& block, const uint16_t* x, int64_t x_bytes, const Output& out,
                  int rows) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t* w = block.data;
  for (int64_t s = 0; s < block.num_steps; ++s, x += kBf16Step, w += kTiles * kTileElements) {
    fetch(w, kTiles * 16);
    _tile_loadd(4, x, x_bytes);
    _tile_loadd(6, w, kTileBytesPerRow);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTiles > 1) {
      _tile_loadd(7, w + kTileElements, kTileBytesPerRow);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTiles > 2) {
      _tile_loadd(6, w + 2 * kTileElements, kTileBytesPerRow);
      _tile_dpbf16ps(2, 4, 6);
    }
    if constexpr (kTiles > 3) {
      _tile_loadd(7, w + 3 * kTileElements, kTileBytesPerRow);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
  FT_STORE_TILE(0, 0);
  if constexpr (kTiles > 1) FT_STORE_TILE(1, 1);
  if constexpr (kTiles > 2) FT_STORE_TILE(2, 2);
  if constexpr (kTiles > 3) FT_STORE_TILE(3, 3);
}

// Sums of sixteen rows, and of those behind them.
void store_low(const Output& out, int tile, bool is_pair) {
  constexpr int rows = kTileRows;
  FT_STORE_TILE(0, tile);
  if (is_pair) FT_STORE_TILE(1, tile + 1);
}
void store_high(const Output& out, int tile, bool is_pair, int rows) {
  FT_STORE_TILE(2, tile);
  if (is_pair) FT_STORE_TILE(3, tile + 1);
}

// 17 to 32 rows times two tiles of columns from `tile` on.
void multiply_square(const Bf16Block& block, int tile, const uint16_t* x, int64_t x_bytes,
                     const Output& out, int high) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int tiles = block.num_tiles();
  const uint16_t* w = block.data + tile * kTileElements;
  const bool is_pair = tile + 1 < tiles;
  const int64_t second = is_pair ? kTileElements : 0;
  const uint16_t* x_high = x + kTileRows * (x_bytes / 2);
  for (int64_t s = 0; s < block.num_steps; ++s, w += tiles * kTileElements) {
    fetch(w, 32);
    _tile_loadd(4, x + s * kBf16Step, x_bytes);
    _tile_loadd(6, w, kTileBytesPerRow);
    _tile_loadd(7, w + second, kTileBytesPerRow);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x_high + s * kBf16Step, x_bytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  store_low(out, tile, is_pair);
  store_high({out.y + kTileRows * out.stride, out.stride, out.cols}, tile, is_pair, high);
}

void multiply_few_any(const Bf16Block& block, const uint16_t* x, int64_t x_bytes, const Output& out,
                      int rows) {
  switch (block.num_tiles()) {
    case 1:
      return multiply_few<1>(block, x, x_bytes, out, rows);
    case 2:
      return multiply_few<2>(block, x, x_bytes, out, rows);
    case 3:
      return multiply_few<3>(block, x, x_bytes, out, rows);
    default:
      return multiply_few<4>(block, x, x_bytes, out, rows);
  }
}

void multiply(const Bf16Block& block, const Bf16Rows& rows) {
  const int64_t x_bytes = 2 * rows.x_stride;
  int low = 0, high = 0;
  for (int first = 0; first < rows.count; first += low + high) {
    const int left = rows.count - first;
    const int now_low = left < kTileRows ? left : kTileRows;
    const int now_high = left - now_low < kTileRows ? left - now_low : kTileRows;
    if (now_low != low || now_high != high) configure(now_low, now_high);
    low = now_low;
    high = now_high;
    const uint16_t* x = rows.x + first * rows.x_stride;
    const Output out{rows.y + first * rows.y_stride, rows.y_stride, block.cols};
    if (high == 0) {
      multiply_few_any(block, x, x_bytes, out, low);
    } else {
      for (int tile = 0; tile < block.num_tiles(); tile += 2) {
        multiply_square(block, tile, x, x_bytes, out, high);
      }
    }
  }
  // Tiles in use would be saved at every change of threads.
  _tile_release();
}

}  // namespace

extern const Bf16Kernels kAmxBf16Kernels;
constexpr Bf16Kernels kAmxBf16Kernels{"amx_bf16", multiply};

}  // namespace foretoken::cpu
