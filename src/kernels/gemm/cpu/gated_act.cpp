#include "kernels/gemm/gated_act.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/gated_row.h"
#include "kernels/gemm/cpu/packed_weight.h"
#include "kernels/gemm/gemm.h"

namespace foretoken::cpu {
namespace {

void write_part(const GatedActArgs& a, const GatedRow& part, int64_t to) {
  if (a.out_dtype == DType::kF32) {
    write_gated(a.activation, part, static_cast<float*>(a.out) + to);
  } else {
    write_gated(a.activation, part, static_cast<uint16_t*>(a.out) + to);
  }
}

// The slices of a row, each as the gated product has it.
void write_raw_row(const GatedActArgs& a, int64_t row) {
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  const float* products = a.gate_up + row * raw_gates_stride(2 * a.size);
  for (int i = 0; i < weight.num_slices(); ++i) {
    const int col = weight.first_col(i), cols = weight.cols(i) / 2;
    const float* gate = products + 2 * int64_t{col};
    const float* gate_bias = a.bias != nullptr ? a.bias + col : nullptr;
    const float* up_bias = a.bias != nullptr ? a.bias + a.size + col : nullptr;
    write_part(a, {gate, gate + cols, gate_bias, up_bias, cols}, row * a.size + col);
  }
}

}  // namespace

void gated_act(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatedActArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    if (a.weight != nullptr) return write_raw_row(a, row);
    const float* gate = a.gate_up + 2 * row * a.size;
    write_part(a, {gate, gate + a.size, nullptr, nullptr, a.size, a.clamp}, row * a.size);
  });
}

}  // namespace foretoken::cpu
