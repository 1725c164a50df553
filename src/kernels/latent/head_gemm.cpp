#include "kernels/latent/head_gemm.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void head_gemm(Queue& queue, const HeadGemmArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.weight != nullptr);
  FT_CHECK(args.y != nullptr && args.max_rows > 0 && args.num_heads > 0 && args.k > 0);
  FT_CHECK(args.n > 0 && args.n % kHeadColumns == 0);
  FT_CHECK(args.x_stride >= args.k && args.y_stride >= args.n);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<HeadGemmArgs> {
  static LiveRowsPlace place(const HeadGemmArgs& a) { return {a.counts}; }
  static OpCost cost(const HeadGemmArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t weight = int64_t{a.num_heads} * a.n * a.k;
    return {.weight_bytes = packed_bytes(weight, a.dtype, live),
            .row_bytes = rows * a.num_heads * (int64_t{a.k} + a.n) * size_of(a.dtype),
            .flops = 2 * rows * weight};
  }
  static std::string shape(const HeadGemmArgs& a) {
    return std::to_string(a.num_heads) + " of " + sizes_text(a.n, a.k);
  }
  static Weights weights(const HeadGemmArgs& a) {
    return {{a.weight}, int64_t{a.num_heads} * a.n * a.k};
  }
};

OpView head_gemm_view() { return counted_view<HeadGemmArgs>(); }

}  // namespace foretoken
