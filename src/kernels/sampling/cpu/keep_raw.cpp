#include "kernels/sampling/keep_raw.h"

#include <cstring>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {

void keep_raw(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const KeepRawArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) {
    const int32_t slot = a.tensors.row_slot[a.tensors.logits_rows[a.row_offset + i]];
    if (!keeps_raw(a.batch.params[slot])) return;
    const int64_t begin = i * a.vocab;
    std::memcpy(a.raw + begin, a.logits + begin, sizeof(float) * static_cast<size_t>(a.vocab));
  });
}

}  // namespace foretoken::cpu
