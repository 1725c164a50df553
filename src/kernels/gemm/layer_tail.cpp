#include "kernels/gemm/layer_tail.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {

void layer_tail(Queue& queue, const LayerTailArgs& args) {
  FT_CHECK(args.counts != nullptr && args.x != nullptr && args.sync != nullptr);
  FT_CHECK(args.o != nullptr && args.gate_up != nullptr && args.down != nullptr);
  FT_CHECK(args.residual != nullptr && args.delta != nullptr && args.normed != nullptr);
  FT_CHECK(args.gated != nullptr && args.mlp_norm != nullptr);
  FT_CHECK(args.max_rows > 0 && args.hidden > 0 && args.x_size > 0 && args.inner > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  if (args.qkv != nullptr) {
    FT_CHECK(args.next_norm != nullptr && args.qkv_out != nullptr && args.qkv_size > 0);
  }
  queue.launch(args);
}

template <>
struct Costs<LayerTailArgs> {
  static LiveRowsPlace place(const LayerTailArgs& a) { return {a.counts}; }
  static OpCost cost(const LayerTailArgs& a, const LiveRows& live) {
    LiveRows each = live;
    each.weight_bytes = 0;
    OpCost sum;
    for_each_tail_op(a, [&]<class Args>(const Args& op) { sum += op_cost(Args::kOp, &op, each); });
    if (live.weight_bytes > 0) {
      sum.weight_bytes += live.weight_bytes - elements(a) * size_of(a.dtype);
    }
    return sum;
  }
  static std::string shape(const LayerTailArgs& a) {
    return sizes_text(a.hidden, a.x_size) + ", " + sizes_text(2 * a.inner, a.hidden) + ", " +
           sizes_text(a.hidden, a.inner) +
           (a.qkv != nullptr ? ", " + sizes_text(a.qkv_size, a.hidden) : "");
  }
  static int64_t elements(const LayerTailArgs& a) {
    return int64_t{a.hidden} *
           (a.x_size + 3 * int64_t{a.inner} + (a.qkv != nullptr ? a.qkv_size : 0));
  }
  static Weights weights(const LayerTailArgs& a) {
    Weights weights{{a.o, a.gate_up, a.down}, elements(a)};
    if (a.qkv != nullptr) weights.handles.push_back(a.qkv);
    return weights;
  }
};

OpView layer_tail_view() { return counted_view<LayerTailArgs>(); }

}  // namespace foretoken
