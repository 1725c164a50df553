#include "kernels/gemm.h"

#include "base/check.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <class Out>
FT_INLINE void write_row(const float* from, const float* bias, Out* to, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, from + i);
    if (bias != nullptr) {
      Lanes more;
      load(more, bias + i);
      lanes += more;
    }
    store(to + i, lanes);
  }
  for (; i < n; ++i) store_one(to + i, bias != nullptr ? from[i] + bias[i] : from[i]);
}

FT_HOT void write_row_f32(const float* from, const float* bias, float* to, int n) {
  write_row(from, bias, to, n);
}
FT_HOT void write_row_bf16(const float* from, const float* bias, uint16_t* to, int n) {
  write_row(from, bias, to, n);
}

// Rows [first, first + rows) of one slice's columns. The product goes through a tile of its own:
// nothing is ever written beyond the live rows, and the type and the bias need no primitives.
void multiply_tile(const GemmArgs& a, const PackedWeight& weight, int slice, int64_t first,
                   int rows) {
  alignas(64) thread_local float tile[kMaxTileRows * kMaxSliceCols];
  const auto* x =
      static_cast<const std::byte*>(a.x) + first * a.k * static_cast<int64_t>(dtype_size(a.dtype));
  weight.multiply(slice, x, tile, rows, a.max_rows - first);
  const int col = weight.first_col(slice);
  const int cols = weight.cols(slice);
  const float* bias = a.bias != nullptr ? a.bias + col : nullptr;
  for (int r = 0; r < rows; ++r) {
    const float* from = tile + int64_t{r} * cols;
    const int64_t to = (first + r) * a.n + col;
    if (a.out_dtype == DType::kF32) {
      write_row_f32(from, bias, static_cast<float*>(a.y) + to, cols);
    } else {
      write_row_bf16(from, bias, static_cast<uint16_t*>(a.y) + to, cols);
    }
  }
}

}  // namespace

void gemm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GemmArgs*>(args);
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == a.n && weight.k() == a.k && weight.dtype() == a.dtype);
  const int rows = live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows);
  const int64_t tiles = (rows + kMaxTileRows - 1) / kMaxTileRows;
  // Tiles run fastest, so that a thread keeps a slice of the weight in its cache.
  pool.parallel_for(weight.num_slices() * tiles, [&](int64_t index, int) {
    const int64_t first = index % tiles * kMaxTileRows;
    multiply_tile(a, weight, static_cast<int>(index / tiles), first,
                  static_cast<int>(std::min<int64_t>(kMaxTileRows, rows - first)));
  });
}

}  // namespace foretoken::cpu
