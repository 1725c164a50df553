#include "kernels/gemm/activate.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void activate(Queue& queue, const ActivateArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.size > 0);
  const bool squashes =
      args.activation == Activation::kTanh || args.activation == Activation::kSigmoid;
  FT_CHECK(squashes ||
           (args.activation >= Activation::kSilu && args.activation <= Activation::kRelu));
  FT_CHECK(args.activation != Activation::kXielu || args.parameters != nullptr);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

template <>
struct Costs<ActivateArgs> {
  static LiveRowsPlace place(const ActivateArgs& a) { return {a.counts}; }
  static OpCost cost(const ActivateArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * a.size * (kFloatBytes + size_of(a.out_dtype))};
  }
  static std::string shape(const ActivateArgs& a) { return std::to_string(a.size); }
};

OpView activate_view() { return counted_view<ActivateArgs>(); }

}  // namespace foretoken
