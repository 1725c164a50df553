#include "kernels/rows/embed.h"

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/norm_row.h"

namespace foretoken::cpu {
namespace {

template <class T>
FT_INLINE void widen_scaled(const T* from, float scale, float* to, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, from + i);
    lanes *= scale;
    store(to + i, lanes);
  }
  for (; i < n; ++i) to[i] = load_one(from + i) * scale;
}

FT_HOT void widen_f32(const float* from, float scale, float* to, int n) {
  widen_scaled(from, scale, to, n);
}
FT_HOT void widen_bf16(const uint16_t* from, float scale, float* to, int n) {
  widen_scaled(from, scale, to, n);
}

}  // namespace

void embed(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const EmbedArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, a.hidden, [&](int64_t row) {
    const int32_t id = a.token_ids[row];
    const int64_t from = (id >= 0 && id < a.vocab ? int64_t{id} : 0) * a.hidden;
    float* to = a.out + row * a.hidden;
    const NormRow values{to, nullptr, a.hidden};
    if (a.dtype == DType::kF32) {
      widen_f32(static_cast<const float*>(a.table) + from, a.scale, to, a.hidden);
      if (a.norm_weight == nullptr) return;
      write_normed(values, a.norm_weight, a.eps, static_cast<float*>(a.normed) + row * a.hidden);
    } else {
      widen_bf16(static_cast<const uint16_t*>(a.table) + from, a.scale, to, a.hidden);
      if (a.norm_weight == nullptr) return;
      write_normed(values, a.norm_weight, a.eps, static_cast<uint16_t*>(a.normed) + row * a.hidden);
    }
  });
}

}  // namespace foretoken::cpu
