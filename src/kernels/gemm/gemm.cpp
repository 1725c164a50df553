#include "kernels/gemm/gemm.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void gemm(Queue& queue, const GemmArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK(args.y != nullptr && args.max_rows > 0 && args.n > 0 && args.k > 0);
  FT_CHECK(args.row_offset >= 0);
  FT_CHECK(args.x_is_old == 0 || args.frees_next == 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  FT_CHECK(args.gated == 0 || args.n % 2 == 0);
  FT_CHECK(args.gated != GemmArgs::kRawGates ||
           (args.out_dtype == DType::kF32 && args.bias == nullptr));
  FT_CHECK(args.add == 0 || (args.gated == 0 && args.out_dtype == DType::kF32));
  queue.launch(args);
}

template <>
struct Costs<GemmArgs> {
  static LiveRowsPlace place(const GemmArgs& a) { return {a.counts}; }
  static OpCost cost(const GemmArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, a.row_offset, a.max_rows);
    const int64_t weight = int64_t{a.n} * a.k;
    const int64_t out = a.gated == 1 ? a.n / 2 : a.add != 0 ? 2 * int64_t{a.n} : a.n;
    return {.weight_bytes =
                packed_bytes(weight, a.dtype, live) + (a.bias != nullptr ? a.n * kFloatBytes : 0),
            .row_bytes = rows * (a.k * size_of(a.dtype) + out * size_of(a.out_dtype)),
            .flops = 2 * rows * weight};
  }
  static std::string shape(const GemmArgs& a) {
    return sizes_text(a.n, a.k) + (a.gated != 0 ? ", gated" : a.add != 0 ? ", adds" : "");
  }
  static Weights weights(const GemmArgs& a) { return {{a.weight}, int64_t{a.n} * a.k}; }
};

OpView gemm_view() { return counted_view<GemmArgs>(); }

}  // namespace foretoken
