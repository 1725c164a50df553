#include "kernels/sampling/sample.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/logits_row.h"
#include "kernels/sampling/cpu/sample_row.h"

namespace foretoken::cpu {

void sample(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SampleArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) {
    const auto index = static_cast<int32_t>(a.row_offset + i);
    const LogitsRow at = logits_row(a.tensors, a.batch.slots, index);
    int32_t& sampled = a.tensors.sampled[index];
    if (at.scored) {
      sampled = history_id(a.batch, at.slot, at.position + 1);
      return;
    }
    SampleRow row;
    row.logits = a.logits + i * a.vocab;
    row.vocab = a.vocab;
    row.position = at.position + 1;
    row.params = &a.batch.params[at.slot];
    row.masks_stop_ids = row.position < row.params->min_len;
    sampled = sample_row(row);
  });
}

}  // namespace foretoken::cpu
