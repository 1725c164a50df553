#pragma once
#include <algorithm>
#include <cstdint>

#include "device/cpu/cpu_pool.h"
#include "kernels/live_rows.h"

namespace foretoken::cpu {

inline int live_rows(const StepCounts& counts, RowKind kind, int row_offset, int max_rows) {
  return live_rows_of(counts, kind, row_offset, max_rows);
}

// Calls f(row) for each row, `cost` elements each. Few and short rows stay on the calling thread:
// handing them over would cost more than they do.
template <class F>
void for_each_row(CpuPool& pool, int64_t rows, int64_t cost, F&& f) {
  constexpr int64_t kGrain = 8192;
  const int64_t chunk = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, cost));
  pool.parallel_for((rows + chunk - 1) / chunk, [&](int64_t index, int) {
    const int64_t end = std::min(rows, (index + 1) * chunk);
    for (int64_t row = index * chunk; row < end; ++row) f(row);
  });
}

}  // namespace foretoken::cpu
