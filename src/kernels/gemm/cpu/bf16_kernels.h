#pragma once
#include <cstdint>
#include <span>

namespace foretoken::cpu {

inline constexpr int kBf16Lanes = 16;  // columns of y that share a vector
inline constexpr int kBf16Tiles = 4;   // most vectors of a block
inline constexpr int kBf16Step = 32;   // neighbours of k that are packed together

// Columns of a bfloat16 weight, packed: for each 32 of k, for each 16 columns (a tile), 16 vectors
// of 16 columns x 2 neighbours of k. A tile is 1 KiB and begins at a multiple of 64 bytes.
struct Bf16Block {
  const uint16_t* data;
  int cols;           // of y, at most 64; the tiles are filled up with zeros
  int64_t num_steps;  // of k

  int num_tiles() const { return (cols + kBf16Lanes - 1) / kBf16Lanes; }
};

// Rows of x in bfloat16 and of y in float, each `stride` elements apart.
struct Bf16Rows {
  const uint16_t* x;
  int64_t x_stride;
  float* y;
  int64_t y_stride;
  int count;
};

// y[count, cols] = x[count, 32 num_steps] times the block. Every element is one chain over k that
// is the same for every number of rows and columns. May read 64 KiB ahead of the block
// (prefetches).
using Bf16Product = void (*)(const Bf16Block& block, const Bf16Rows& rows);

// The kernels for one kind of processor. Bits differ between them.
struct Bf16Kernels {
  const char* name;
  Bf16Product multiply;
};

// Those that this machine can run, the fastest first; none without AVX2.
std::span<const Bf16Kernels> bf16_kernels();

}  // namespace foretoken::cpu
