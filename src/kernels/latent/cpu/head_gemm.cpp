#include "kernels/latent/head_gemm.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/gemm/cpu/packed_weight.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kGatheredBytes = 64 << 12;  // 64 rows of 1024 floats

struct HeadScratch {
  alignas(64) std::byte rows[kGatheredBytes];
  alignas(64) float products[kMaxTileRows * kMaxSliceCols];
};

FT_HOT void store_products_f32(const float* from, float* to, int count) {
  std::copy_n(from, count, to);
}
FT_HOT void store_products_bf16(const float* from, uint16_t* to, int count) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes lanes;
    load(lanes, from + i);
    store(to + i, lanes);
  }
  for (; i < count; ++i) store_one(to + i, from[i]);
}

// Rows [first, first + count) of the head that a slice is of.
struct HeadTile {
  int slice;
  int head;
  int64_t first;
  int count;
};

// The head's rows of x side by side.
void gather_rows(const HeadGemmArgs& a, const HeadTile& tile, std::byte* to) {
  const size_t element = dtype_size(a.dtype), bytes = static_cast<size_t>(a.k) * element;
  for (int r = 0; r < tile.count; ++r) {
    const int64_t at = ((tile.first + r) * a.num_heads + tile.head) * a.x_stride;
    std::memcpy(to + static_cast<size_t>(r) * bytes,
                static_cast<const std::byte*>(a.x) + static_cast<size_t>(at) * element, bytes);
  }
}

void multiply_head(const HeadGemmArgs& a, const PackedWeight& weight, const HeadTile& tile) {
  auto& scratch = thread_scratch<HeadScratch>();
  const int col = weight.first_col(tile.slice) - tile.head * a.n, cols = weight.cols(tile.slice);
  FT_CHECK(col >= 0 && col + cols <= a.n);
  gather_rows(a, tile, scratch.rows);
  weight.multiply(tile.slice, scratch.rows, scratch.products, tile.count, tile.count);
  for (int r = 0; r < tile.count; ++r) {
    const float* from = scratch.products + int64_t{r} * cols;
    const int64_t to = ((tile.first + r) * a.num_heads + tile.head) * a.y_stride + col;
    if (a.dtype == DType::kF32) {
      store_products_f32(from, static_cast<float*>(a.y) + to, cols);
    } else {
      store_products_bf16(from, static_cast<uint16_t*>(a.y) + to, cols);
    }
  }
}

}  // namespace

// A task is a slice, which is of one head, and a tile of rows.
void head_gemm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const HeadGemmArgs*>(args);
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == int64_t{a.num_heads} * a.n && weight.k() == a.k);
  FT_CHECK(weight.dtype() == a.dtype && weight.order() == WeightOrder::kPlain);
  FT_CHECK(weight.quantized() == nullptr);
  const int64_t row_bytes = int64_t{a.k} * static_cast<int64_t>(dtype_size(a.dtype));
  FT_CHECK(row_bytes <= kGatheredBytes);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t at_once = std::min<int64_t>(kMaxTileRows, kGatheredBytes / row_bytes);
  const int64_t tiles = (rows + at_once - 1) / at_once;
  pool.parallel_for(weight.num_slices() * tiles, [&](int64_t index, int) {
    const auto slice = static_cast<int>(index / tiles);
    const int64_t first = index % tiles * at_once;
    const auto count = static_cast<int>(std::min(at_once, rows - first));
    multiply_head(a, weight, {slice, weight.first_col(slice) / a.n, first, count});
  });
}

}  // namespace foretoken::cpu
