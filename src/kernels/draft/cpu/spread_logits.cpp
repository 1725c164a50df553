#include "kernels/draft/spread_logits.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {

void spread_logits(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SpreadLogitsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  for_each_row(pool, rows, a.vocab, [&](int64_t row) {
    const float* in = a.in + row * a.n;
    float* out = a.out + row * a.vocab;
    std::fill_n(out, a.vocab, -std::numeric_limits<float>::infinity());
    for (int n = 0; n < a.n; ++n) {
      if (a.id_map[n] >= 0) out[a.id_map[n]] = in[n];
    }
  });
}

}  // namespace foretoken::cpu
