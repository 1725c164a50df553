#pragma once
#include <cstdint>
#include <span>

namespace foretoken::cpu {

inline constexpr int kHalfCols = 16;      // columns of y that are packed together
inline constexpr int kMaxHalfGroups = 4;  // of as many columns, multiplied together
inline constexpr int kMaxHalfRows = 6;

// Some neighbours of k of a weight of halves, and rows of x.
struct HalfPiece {
  const uint16_t* weights;  // groups of [k, kHalfCols]
  int64_t group_stride;     // elements from a group to the next
  const float* x;
  int64_t x_stride;  // of rows
  int64_t count;     // of k
  // [rows, kMaxHalfGroups * kHalfCols]: the sums so far, to which the products are added.
  float* sums;
};

// Adds the products. Every element is one chain of fused additions over k, the same for every
// number of rows and groups and however k is cut into pieces.
using HalfProduct = void (*)(const HalfPiece& piece);

// The kernels for one kind of processor. Their bits are equal.
struct HalfKernels {
  const char* name;
  // By rows - 1 and groups - 1.
  HalfProduct products[kMaxHalfRows][kMaxHalfGroups];
};

// Those that this machine can run, the fastest first; the last one, "plain", is slow.
std::span<const HalfKernels> half_kernels();

// Whether there are fast ones.
bool has_half_products();

}  // namespace foretoken::cpu
