#include "kernels/rows/see_spans.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void see_spans(const void* args, CpuPool&) {
  const auto& a = *static_cast<const SeeSpansArgs*>(args);
  for (int32_t i = 0; i < a.counts->num_spans; ++i) {
    const SpanState& span = a.spans[i];
    if (span.num_rows == 0) continue;
    const int32_t last = a.positions[span.row_begin + span.num_rows - 1];
    std::fill_n(a.last_seen + span.row_begin, span.num_rows, last);
  }
  std::fill(a.last_seen + a.counts->num_rows, a.last_seen + a.max_rows, 0);
}

}  // namespace foretoken::cpu
