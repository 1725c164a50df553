#include "kernels/gemm/gated_act.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/gated_row.h"

namespace foretoken::cpu {

void gated_act(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatedActArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    const float* gate = a.gate_up + 2 * row * a.size;
    const GatedRow parts{gate, gate + a.size, nullptr, nullptr, a.size};
    if (a.out_dtype == DType::kF32) {
      write_gated(a.activation, parts, static_cast<float*>(a.out) + row * a.size);
    } else {
      write_gated(a.activation, parts, static_cast<uint16_t*>(a.out) + row * a.size);
    }
  });
}

}  // namespace foretoken::cpu
