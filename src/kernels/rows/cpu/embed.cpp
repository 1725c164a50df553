#include "kernels/rows/embed.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/norm_row.h"
#include "kernels/rows/cpu/table_row.h"

namespace foretoken::cpu {

void embed(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const EmbedArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, a.hidden, [&](int64_t row) {
    const int32_t id = a.token_ids[row];
    float* to = a.out + row * a.hidden;
    read_table_row(a.table, id >= 0 && id < a.vocab ? id : 0, a.hidden, a.scale, to);
    if (a.norm_weight == nullptr) return;
    const NormRow values{to, nullptr, a.hidden};
    if (a.dtype == DType::kF32) {
      write_normed(values, a.norm_weight, a.eps, static_cast<float*>(a.normed) + row * a.hidden);
    } else {
      write_normed(values, a.norm_weight, a.eps, static_cast<uint16_t*>(a.normed) + row * a.hidden);
    }
  });
}

}  // namespace foretoken::cpu
