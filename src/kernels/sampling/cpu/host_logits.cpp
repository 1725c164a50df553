#include "kernels/sampling/host_logits.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/logits_row.h"

namespace foretoken::cpu {
namespace {

void export_row(const ExportLogitsArgs& a, int32_t i) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + i);
  const SlotParams& params = a.batch.params[at.slot];
  if (at.scored || params.processors == 0) return;
  HostRow& row = a.host.rows[i];
  row.processors = params.processors;
  row.choice = params.choice;
  row.prompt_len = params.prompt_len;
  row.num_tokens = std::min(at.position + 1, a.host.max_len);
  int32_t* history = a.host.history + int64_t{i} * a.host.max_len;
  for (int32_t t = 0; t < row.num_tokens; ++t) history[t] = history_id(a.batch, at.slot, t);
  const int64_t begin = int64_t{i} * a.vocab;
  std::memcpy(a.host.logits + begin, a.logits + begin,
              sizeof(float) * static_cast<size_t>(a.vocab));
}

}  // namespace

void export_logits(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ExportLogitsArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  std::fill(a.host.rows, a.host.rows + a.max_rows, HostRow{});
  pool.parallel_for(rows, [&](int64_t i, int) { export_row(a, static_cast<int32_t>(i)); });
}

void import_logits(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ImportLogitsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) {
    if (a.host.rows[i].processors == 0) return;
    const int64_t begin = i * a.vocab;
    std::memcpy(a.logits + begin, a.host.logits + begin,
                sizeof(float) * static_cast<size_t>(a.vocab));
  });
}

}  // namespace foretoken::cpu
