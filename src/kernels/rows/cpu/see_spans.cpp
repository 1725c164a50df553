#include "kernels/rows/see_spans.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void see_spans(const void* args, CpuPool&) {
  const auto& a = *static_cast<const SeeSpansArgs*>(args);
  const int32_t num_rows = a.counts->num_rows;
  for (int32_t row = 0; row < num_rows;) {
    const int32_t last = last_of_slot(a.row_slot, row, num_rows);
    std::fill(a.last_seen + row, a.last_seen + last + 1, a.positions[last]);
    row = last + 1;
  }
  std::fill(a.last_seen + num_rows, a.last_seen + a.max_rows, 0);
}

}  // namespace foretoken::cpu
