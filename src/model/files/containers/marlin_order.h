#pragma once
#include <cstdint>
#include <vector>

namespace foretoken {

// The order of the kernel Marlin 24 (as compressed-tensors 0.9 writes it): tiles of 64 rows and 16
// of the elements that rows keep, whose fours of kept pairs are told by words of 16 bits.

inline constexpr int64_t kMarlinTile = 16;
inline constexpr int64_t kMarlinRows = 64;

// Where the codes of a tile lie among its codes of `bits` (4 or 8) bits in the file. Code i of the
// tile is of row i / 256 * 16 + i % 16 and of its kept element i % 256 / 16.
const std::vector<int32_t>& marlin_order(int bits);

// Which of the 128 words of 64 rows holds the places of sixteen elements of a row, the first or
// second sixteen of 32.
int64_t marlin_place(int64_t row, int64_t half);

// Where the scale of a row lies among those of a group.
int64_t marlin_scale_of(int64_t row);

}  // namespace foretoken
