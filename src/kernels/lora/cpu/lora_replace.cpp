#include "kernels/lora/lora_replace.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/lora/cpu/row_dots.h"

namespace foretoken::cpu {
namespace {

constexpr int kReplacedCols = 64;  // of a piece of work
static_assert(kReplacedCols % kDotsAtOnce == 0 && kLoraRankStep % kDotsAtOnce == 0);

// Columns [first, first + kReplacedCols) of the rows of a tile.
void multiply_piece(const LoraReplaceArgs& a, const LoraTile& tile, const LoraWhole& whole,
                    int first) {
  const int end = std::min(first + kReplacedCols, a.n);
  const int live = std::min(end, whole.count);
  const RowDots dots{whole.rows, a.x, a.k, a.dtype};
  for (int column = first; column < live; column += kDotsAtOnce) {
    for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
      const int64_t row = a.rows.rows[i];
      float sums[kDotsAtOnce];
      multiply_four(dots, column, row, sums);
      float* y = a.y + row * a.n + column;
      for (int j = 0; j < std::min(kDotsAtOnce, live - column); ++j) y[j] = a.scale * sums[j];
    }
  }
  for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
    float* y = a.y + int64_t{a.rows.rows[i]} * a.n;
    std::fill(y + std::max(first, live), y + end, -std::numeric_limits<float>::infinity());
  }
}

template <class T>
void copy_row(const LoraReplaceArgs& a, const T* from, int first, int end, float* y) {
  for (int c = first; c < end; ++c) y[c] = a.scale * load_one(from + c);
}

void look_up_piece(const LoraReplaceArgs& a, const LoraTile& tile, const LoraWhole& whole,
                   int first) {
  const int end = std::min(first + kReplacedCols, a.n);
  for (int i = tile.begin; i < tile.begin + tile.count; ++i) {
    const int64_t row = a.rows.rows[i];
    const int32_t own = a.token_ids[row];
    const int64_t at = int64_t{own >= 0 && own < whole.count ? own : 0} * a.n;
    float* y = a.y + row * a.n;
    a.dtype == DType::kF32
        ? copy_row(a, static_cast<const float*>(whole.rows) + at, first, end, y)
        : copy_row(a, static_cast<const uint16_t*>(whole.rows) + at, first, end, y);
  }
}

}  // namespace

void lora_replace(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LoraReplaceArgs*>(args);
  const int pieces = (a.n + kReplacedCols - 1) / kReplacedCols;
  pool.parallel_for(int64_t{*a.rows.num_tiles} * pieces, [&](int64_t index, int) {
    const LoraTile& tile = a.rows.tiles[index / pieces];
    const LoraWhole& whole = a.matrices[int64_t{tile.adapter} * a.adapter_stride];
    if (whole.rows == nullptr) return;
    const int first = static_cast<int>(index % pieces) * kReplacedCols;
    a.token_ids != nullptr ? look_up_piece(a, tile, whole, first)
                           : multiply_piece(a, tile, whole, first);
  });
}

}  // namespace foretoken::cpu
