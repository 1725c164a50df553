#include "kernels/rows/move_rows.h"

#include <cstring>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <class In, class Out>
FT_INLINE void convert(const In* from, Out* to, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, from + i);
    store(to + i, lanes);
  }
  for (; i < n; ++i) store_one(to + i, load_one(from + i));
}

FT_HOT void narrow(const float* from, uint16_t* to, int n) { convert(from, to, n); }
FT_HOT void widen(const uint16_t* from, float* to, int n) { convert(from, to, n); }

}  // namespace

void move_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MoveRowsArgs*>(args);
  const int rows = live_rows(*a.counts, a.row_kind, 0, a.max_rows);
  const auto in_size = static_cast<int64_t>(dtype_size(a.in_dtype));
  const int64_t in_stride = a.in_stride > 0 ? a.in_stride : a.width;
  const auto out_size = static_cast<int64_t>(dtype_size(a.out_dtype));
  for_each_row(pool, rows, a.width, [&](int64_t row) {
    const int64_t from_row = a.from != nullptr ? a.from[row] : row;
    const int64_t to_row = a.to != nullptr ? a.to[row] : row;
    const void* from = static_cast<const std::byte*>(a.in) + from_row * in_stride * in_size;
    void* to = static_cast<std::byte*>(a.out) + (to_row * a.out_stride + a.out_offset) * out_size;
    if (a.in_dtype == a.out_dtype) {
      std::memcpy(to, from, static_cast<size_t>(a.width * in_size));
    } else if (a.in_dtype == DType::kF32) {
      narrow(static_cast<const float*>(from), static_cast<uint16_t*>(to), a.width);
    } else {
      widen(static_cast<const uint16_t*>(from), static_cast<float*>(to), a.width);
    }
  });
}

}  // namespace foretoken::cpu
