#include "base/check.h"
#include "kernels/gemm/layer_tail.h"
#include "model/stack/layer_runner.h"

// Few rows of a plain layer behind its attention, as one op.

namespace foretoken {
namespace {

constexpr int32_t kTailRows = 8;  // what devices may have a kernel of its own for

}  // namespace

// Nothing comes between the products of these layers, and a device may overlap them.
LayerRunner::TailLayer LayerRunner::tail_of(const LayerRows& rows,
                                            const DecoderLayer& layer) const {
  const auto* mixer = std::get_if<Gqa>(&layer.mixer);
  const auto* feed_forward = std::get_if<GatedMlp>(&layer.feed_forward);
  const bool plain = layer.mixer_post_norm.weight == nullptr && layer.feed_forward_norm.is_rms() &&
                     layer.feed_forward_post_norm.weight == nullptr && !layer.parallel &&
                     !layer.laurel.exists() && !layer.streams.exists() && !layer.depth.exists() &&
                     !layer.mixer_gate.exists() && !layer.feed_forward_gate.exists() &&
                     !layer.input.exists() && layer.mixer_residual == nullptr && !layer.shortcut &&
                     !layer.joins_shortcut && !layer.norms_residual && !layer.side &&
                     layer.scale == 1 && config_.residual_scale == 1;
  if (mixer == nullptr || mixer->index.exists() || feed_forward == nullptr || !plain) return {};
  if (feed_forward->spec.apart()) return {};
  // Its blocks wait for each other, which they could do for ever beside another lane.
  if (rows.max_rows > kTailRows || sharding_.is_cut() || rows.lora != nullptr || rows.beside ||
      rows.rounded != nullptr) {
    return {};
  }
  return {mixer, feed_forward};
}

const float* LayerRunner::run_tail(const LayerRows& rows, const TailLayer& tail,
                                   const DecoderLayer& layer, const DecoderLayer* next) {
  const Gqa& mixer = *tail.mixer;
  const GatedMlp& mlp = *tail.feed_forward;
  LayerTailArgs args{.counts = rows.counts,
                     .x = gqa_.attended,
                     .o = mixer.o.weight.get(),
                     .gate_up = mlp.gate_up.weight.get(),
                     .down = mlp.down.weight.get(),
                     .qkv = nullptr,
                     .o_bias = mixer.o.bias,
                     .gate_up_bias = mlp.gate_up.bias,
                     .down_bias = mlp.down.bias,
                     .qkv_bias = nullptr,
                     .mlp_norm = layer.feed_forward_norm.weight,
                     .next_norm = nullptr,
                     .residual = residual_,
                     .delta = delta_,
                     .normed = normed_,
                     .gated = gated_mlp_.gated,
                     .qkv_out = gqa_.qkv,
                     .sync = sync_,
                     .max_rows = rows.max_rows,
                     .hidden = config_.hidden_size,
                     .x_size = mixer.o.inputs,
                     .inner = mlp.down.inputs,
                     .qkv_size = 0,
                     .eps = config_.rms_norm_eps,
                     .dtype = config_.dtype,
                     .activation = mlp.spec.activation};
  const bool joins = next != nullptr && !next->side;
  const Gqa* next_mixer = joins ? std::get_if<Gqa>(&next->mixer) : nullptr;
  const bool enters =
      next_mixer != nullptr && next->mixer_norm.is_rms() && !next_mixer->has_gates();
  if (enters) {
    FT_CHECK(next_mixer->qkv.inputs == config_.hidden_size);
    args.qkv = next_mixer->qkv.weight.get();
    args.qkv_bias = next_mixer->qkv.bias;
    args.qkv_size = next_mixer->qkv.outputs;
    args.next_norm = next->mixer_norm.weight;
  }
  layer_tail(rows.queue, args);
  if (next == nullptr) return delta_;
  if (!enters) {
    add_and_norm(rows, delta_, next->mixer_norm);
    project(rows, *next, normed_);
  }
  return nullptr;
}

}  // namespace foretoken
