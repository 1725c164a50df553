#include "model/layer/recurrent/short_conv.h"

#include <algorithm>
#include <vector>

#include "kernels/linear/causal_conv.h"

namespace foretoken {

Status ShortConv::load(PartLoader& loader, const std::string& layer, const ShortConvSpec& whole) {
  const std::string base = layer + whole.base;
  const ShardRange own = shard_of(whole.channels, loader.sharding());
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  const int64_t channels = whole.channels;
  std::vector<TensorPart> parts;
  for (const int64_t first : {int64_t{0}, channels, 2 * channels}) {
    parts.push_back({base + whole.in, 3 * channels, first + own.begin, own.count});
  }
  if (!loader.sharding().is_cut()) parts = {{base + whole.in, 3 * channels}};
  FT_RETURN_IF_ERROR(loader.load_linear(parts, whole.inputs, whole.bias, &in));
  FT_RETURN_IF_ERROR(
      loader.load_conv(base + whole.conv, {channels, own.begin, own.count}, whole.width, &weights));
  if (whole.bias) {
    FT_RETURN_IF_ERROR(
        loader.load_vector({{base + whole.conv + ".bias", channels, own.begin, own.count}}, &bias));
  }
  return loader.load_summed(base + whole.out, channels, whole.bias, &out);
}

void ShortConv::Scratch::fit(const ShortConvSpec& part) {
  channels_ = std::max(channels_, part.channels);
}

Status ShortConv::Scratch::take(const ScratchSource& source) {
  if (channels_ == 0) return {};
  FT_ASSIGN_OR_RETURN(projected, source.floats(3 * int64_t{channels_}));
  FT_ASSIGN_OR_RETURN(mixed, source.act(channels_));
  return {};
}

void ShortConv::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, in, {scratch.projected}, dtype);
}

void ShortConv::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  const float* gates = scratch.projected;
  causal_conv(rows.queue, {.counts = rows.counts,
                           .x = gates + 2 * int64_t{spec.channels},
                           .x_gate = gates,
                           .out_gate = gates + spec.channels,
                           .weights = weights,
                           .bias = bias,
                           .positions = rows.positions,
                           .row_slot = rows.row_slot,
                           .history = kv.state.history,
                           .out = scratch.mixed,
                           .stride = 3 * spec.channels,
                           .max_rows = rows.max_rows,
                           .channels = spec.channels,
                           .width = spec.width,
                           .history_rows = kv.state.history_rows,
                           .silu = 0,
                           .out_dtype = dtype});
}

}  // namespace foretoken
