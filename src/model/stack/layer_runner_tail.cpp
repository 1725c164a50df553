#include "base/check.h"
#include "kernels/gemm/layer_tail.h"
#include "model/stack/layer_runner.h"

// Few rows of a plain layer behind its attention, as one op.

namespace foretoken {
namespace {

constexpr int32_t kTailRows = 8;  // what devices may have a kernel of its own for

}  // namespace

// Grouped-query attention, then a gated MLP of two products, in a layer of which they are all; a
// device may overlap their products.
LayerRunner::TailLayer LayerRunner::tail_of(const LayerRows& rows,
                                            const DecoderLayer& layer) const {
  const auto* mixer = std::get_if<Gqa>(&layer.mixer);
  const auto* feed_forward = std::get_if<GatedMlp>(&layer.feed_forward);
  if (mixer == nullptr || feed_forward == nullptr || !feed_forward->is_two_products()) return {};
  const bool joined = layer.joints.all() && layer.feed_forward_norm.is_rms();
  if (!joined || config_.residual_scale != 1 || !runs_tails(rows)) return {};
  return {mixer, feed_forward};
}

// Whether rows are those of the op: few of plain weights, all on one rank. Its blocks wait for each
// other, which they could do for ever beside another lane.
bool LayerRunner::runs_tails(const LayerRows& rows) const {
  return rows.max_rows <= kTailRows && !sharding_.is_cut() && rows.lora == nullptr &&
         !rows.beside && rows.rounded == nullptr;
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
  const bool joined = next != nullptr && next->joints.norm_enters && next->joints.parts_alone;
  const Gqa* next_mixer = joined ? std::get_if<Gqa>(&next->mixer) : nullptr;
  const bool enters =
      next_mixer != nullptr && next->mixer_norm.is_rms() && next_mixer->makes_qkv_alone();
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
    enter(rows, delta_, *next);
    project(rows, *next, normed_);
  }
  return nullptr;
}

}  // namespace foretoken
