#include "kernels/rows/softcap.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT void scale_and_cap(const SoftcapArgs& a, float* x, int64_t n) {
  if (a.scale != 1) {
    for (int64_t i = 0; i < n; ++i) x[i] *= a.scale;
  }
  if (a.cap > 0) soft_cap_all(x, a.cap, n);
}

}  // namespace

void softcap(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SoftcapArgs*>(args);
  // One row of a large vocabulary is work for all threads.
  constexpr int64_t kPiece = 4096;
  const int rows = live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows);
  const int64_t count = int64_t{rows} * a.size;
  pool.parallel_for((count + kPiece - 1) / kPiece, [&](int64_t index, int) {
    const int64_t begin = index * kPiece;
    scale_and_cap(a, a.x + begin, std::min(kPiece, count - begin));
  });
}

}  // namespace foretoken::cpu
