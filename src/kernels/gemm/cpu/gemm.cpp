#include "kernels/gemm/gemm.h"

#include "base/check.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/gated_row.h"
#include "kernels/gemm/cpu/packed_weight.h"

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

FT_HOT void add_row(const float* from, const float* bias, float* to, int n) {
  for (int i = 0; i < n; ++i) to[i] += bias != nullptr ? from[i] + bias[i] : from[i];
}
FT_HOT void write_row_f32(const float* from, const float* bias, float* to, int n) {
  write_row(from, bias, to, n);
}
FT_HOT void write_row_bf16(const float* from, const float* bias, uint16_t* to, int n) {
  write_row(from, bias, to, n);
}

// The product goes through a tile of its own: nothing is ever written beyond the live rows, and the
// type and the bias need no primitives.
void write_tile(const GemmArgs& a, const PackedWeight& weight, int slice, int64_t first, int rows,
                const float* tile) {
  const int col = weight.first_col(slice);
  const int cols = weight.cols(slice);
  const float* bias = a.bias != nullptr ? a.bias + col : nullptr;
  for (int r = 0; r < rows; ++r) {
    const float* from = tile + int64_t{r} * cols;
    const int64_t to = (first + r) * a.n + col;
    if (a.add != 0) {
      add_row(from, bias, static_cast<float*>(a.y) + to, cols);
    } else if (a.out_dtype == DType::kF32) {
      write_row_f32(from, bias, static_cast<float*>(a.y) + to, cols);
    } else {
      write_row_bf16(from, bias, static_cast<uint16_t*>(a.y) + to, cols);
    }
  }
}

// The same for a weight of gates and ups, which each slice has side by side.
void write_gated_tile(const GemmArgs& a, const PackedWeight& weight, int slice, int64_t first,
                      int rows, const float* tile) {
  const int64_t size = a.n / 2;
  const int col = weight.first_col(slice);
  const int cols = weight.cols(slice) / 2;
  const float* gate_bias = a.bias != nullptr ? a.bias + col : nullptr;
  const float* up_bias = a.bias != nullptr ? a.bias + size + col : nullptr;
  for (int r = 0; r < rows; ++r) {
    const float* gate = tile + int64_t{r} * 2 * cols;
    const GatedRow row{gate, gate + cols, gate_bias, up_bias, cols};
    const int64_t to = (first + r) * size + col;
    if (a.out_dtype == DType::kF32) {
      write_gated(a.activation, row, static_cast<float*>(a.y) + to);
    } else {
      write_gated(a.activation, row, static_cast<uint16_t*>(a.y) + to);
    }
  }
}

// The products of such a weight in packing order.
void write_raw_tile(const GemmArgs& a, const PackedWeight& weight, int slice, int64_t first,
                    int rows, const float* tile) {
  const int cols = weight.cols(slice);
  for (int r = 0; r < rows; ++r) {
    const int64_t to = (first + r) * raw_gates_stride(a.n) + 2 * int64_t{weight.first_col(slice)};
    write_row_f32(tile + int64_t{r} * cols, nullptr, static_cast<float*>(a.y) + to, cols);
  }
}

}  // namespace

void gemm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GemmArgs*>(args);
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == a.n && weight.k() == a.k && weight.dtype() == a.dtype);
  FT_CHECK((weight.order() == WeightOrder::kGateUp) == (a.gated != 0));
  const auto write = a.gated == 0                     ? write_tile
                     : a.gated == GemmArgs::kRawGates ? write_raw_tile
                                                      : write_gated_tile;
  const int rows = live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows);
  for_each_product_tile(pool, weight, a.x, rows, a.max_rows,
                        [&](int slice, int64_t first, int count, const float* products) {
                          write(a, weight, slice, first, count, products);
                        });
}

}  // namespace foretoken::cpu
