#include "kernels/rows/softcap.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT void cap_values(float* x, float cap, int64_t n) { soft_cap_all(x, cap, n); }

}  // namespace

void softcap(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SoftcapArgs*>(args);
  // One row of a large vocabulary is work for all threads.
  constexpr int64_t kPiece = 4096;
  const int rows = live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows);
  const int64_t count = int64_t{rows} * a.size;
  pool.parallel_for((count + kPiece - 1) / kPiece, [&](int64_t index, int) {
    const int64_t begin = index * kPiece;
    cap_values(a.x + begin, a.cap, std::min(kPiece, count - begin));
  });
}

}  // namespace foretoken::cpu
