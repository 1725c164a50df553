#include "kernels/sample.h"

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sample_row.h"

namespace foretoken::cpu {

void sample(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SampleArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) {
    const int64_t logits_row = a.row_offset + i;
    const int32_t token_row = a.tensors.logits_rows[logits_row];
    SampleRow row;
    row.logits = a.logits + i * a.vocab;
    row.vocab = a.vocab;
    row.position = a.tensors.positions[token_row] + 1;
    row.params = &a.batch.params[a.tensors.row_slot[token_row]];
    row.masks_stop_ids = row.position < row.params->min_len;
    a.tensors.sampled[logits_row] = sample_row(row);
  });
}

}  // namespace foretoken::cpu
