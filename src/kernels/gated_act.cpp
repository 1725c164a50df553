#include "kernels/gated_act.h"

#include "base/check.h"

namespace foretoken {

void gated_act(Queue& queue, const GatedActArgs& args) {
  FT_CHECK(args.counts != nullptr && args.gate_up != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.size > 0);
  FT_CHECK(args.activation >= Activation::kSilu && args.activation <= Activation::kGeluTanh);
  FT_CHECK(args.out_dtype == DType::kF32 || args.out_dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
