#include "kernels/gemm/head_argmax.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

int64_t head_argmax_bytes(int32_t max_rows, int32_t n) {
  // Few rows are shared among narrower warps (kernels/gemm/cuda/gemm_common.cuh).
  constexpr int32_t kFewRows = 64;
  const auto keys = [n](int64_t rows, int32_t tile) { return rows * ((n + tile - 1) / tile); };
  const int32_t few = std::min(max_rows, kFewRows);
  return (keys(few, 16) + keys(max_rows - few, 32)) * int64_t{sizeof(uint64_t)};
}

void head_argmax(Queue& queue, const HeadArgmaxArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK((args.ids != nullptr || args.keys != nullptr) && args.workspace != nullptr);
  FT_CHECK(args.max_rows > 0 && args.n > 0 && args.k > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<HeadArgmaxArgs> {
  static LiveRowsPlace place(const HeadArgmaxArgs& a) { return {a.counts}; }
  static OpCost cost(const HeadArgmaxArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kLogits, 0, a.max_rows);
    const int64_t weight = int64_t{a.n} * a.k;
    return {.weight_bytes = packed_bytes(weight, a.dtype, live),
            .row_bytes = rows * (a.k * size_of(a.dtype) + kIdBytes),
            .flops = 2 * rows * weight};
  }
  static std::string shape(const HeadArgmaxArgs& a) { return sizes_text(a.n, a.k); }
  static Weights weights(const HeadArgmaxArgs& a) { return {{a.weight}, int64_t{a.n} * a.k}; }
};

OpView head_argmax_view() { return counted_view<HeadArgmaxArgs>(); }

}  // namespace foretoken
