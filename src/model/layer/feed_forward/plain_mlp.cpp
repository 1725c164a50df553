#include "model/layer/feed_forward/plain_mlp.h"

#include <algorithm>

#include "kernels/gemm/activate.h"

namespace foretoken {

Status PlainMlp::load(PartLoader& loader, const std::string& layer, const PlainMlpSpec& whole) {
  const std::string base = layer + whole.base;
  const ShardRange own = shard_of(whole.inner, loader.sharding());
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  FT_RETURN_IF_ERROR(loader.load_linear({{base + whole.up, whole.inner, own.begin, own.count}},
                                        loader.config().hidden_size, whole.bias, &up));
  FT_RETURN_IF_ERROR(loader.load_summed(base + whole.down, whole.inner, whole.bias, &down));
  if (whole.activation != Activation::kXielu) return {};
  const std::string bend = base + "act_fn.";
  return loader.load_vector(
      {{bend + "alpha_p", 1}, {bend + "alpha_n", 1}, {bend + "beta", 1}, {bend + "eps", 1}},
      &parameters);
}

void PlainMlp::Scratch::fit(const PlainMlpSpec& part) { inner_ = std::max(inner_, part.inner); }

Status PlainMlp::Scratch::take(const ScratchSource& source) {
  if (inner_ == 0) return {};
  FT_ASSIGN_OR_RETURN(expanded, source.floats(inner_));
  FT_ASSIGN_OR_RETURN(active, source.act(inner_));
  return {};
}

void PlainMlp::expand(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, up, {scratch.expanded}, dtype);
  activate(rows.queue, {.counts = rows.counts,
                        .x = scratch.expanded,
                        .out = scratch.active,
                        .max_rows = rows.max_rows,
                        .size = spec.inner,
                        .activation = spec.activation,
                        .out_dtype = dtype,
                        .parameters = parameters});
}

}  // namespace foretoken
