#include "model/layer/layer_runner.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/comm/collectives.h"
#include "kernels/gemm/layer_tail.h"
#include "model/layer/rope_table.h"

namespace foretoken {
namespace {

constexpr int32_t kFewRows = 64;
constexpr int32_t kTailRows = 8;  // what devices may have a kernel of its own for

}  // namespace

Result<DeviceRope> upload_rope(const RopeConfig& rope, int32_t max_model_len, Arena& arena,
                               WeightLoader& loader) {
  const RopeTable table = make_rope_table(rope, max_model_len);
  FT_ASSIGN_OR_RETURN(
      void* memory, loader.upload(arena, table.inv_freq.data(),
                                  table.inv_freq.size() * sizeof(float), "the rotary frequencies"));
  return DeviceRope{static_cast<const float*>(memory), rope.rotary_dim, table.scaling};
}

void LayerRunner::fit(const DecoderLayer& layer) {
  const auto make_room = [&](const auto& part) { scratch_of(part).fit(part.spec); };
  std::visit(make_room, layer.mixer);
  std::visit(make_room, layer.feed_forward);
  has_post_norms_ = has_post_norms_ || layer.mixer_post_norm.weight != nullptr ||
                    layer.feed_forward_post_norm.weight != nullptr;
}

Status LayerRunner::take_scratch(Arena& arena) {
  const ScratchSource source{device_, attention_, arena, config_.dtype, max_rows_};
  const int32_t hidden = config_.hidden_size;
  FT_ASSIGN_OR_RETURN(residual_, source.floats(hidden));
  FT_ASSIGN_OR_RETURN(normed_, source.act(hidden));
  FT_RETURN_IF_ERROR(gqa_.take(source));
  FT_ASSIGN_OR_RETURN(delta_, source.floats(hidden));
  if (has_post_norms_) {
    FT_ASSIGN_OR_RETURN(added_, source.floats(hidden));
  }
  FT_RETURN_IF_ERROR(gated_mlp_.take(source));
  FT_ASSIGN_OR_RETURN(sync_,
                      arena.take_array<uint32_t>(LayerTailArgs::kSyncWords, ScratchSource::kWhat));
  return {};
}

const float* LayerRunner::run(const LayerRows& rows, const LayerKv& kv, const DecoderLayer& layer,
                              const void* x, const DecoderLayer* next) {
  FT_CHECK(rows.max_rows > 0 && rows.max_rows <= max_rows_);
  if (x != nullptr) project(rows, layer, x);
  std::visit([&](const auto& mixer) { mixer.attend(rows, kv, scratch_of(mixer)); }, layer.mixer);
  if (const TailLayer tail = tail_of(rows, layer); tail.mixer != nullptr) {
    return run_tail(rows, tail, layer, next);
  }
  const float* delta = run_parts(rows, layer);
  if (next == nullptr) return delta;
  add_and_norm(rows, delta, next->mixer_norm);
  project(rows, *next, normed_);
  return nullptr;
}

// What follows attention, one op after the other.
const float* LayerRunner::run_parts(const LayerRows& rows, const DecoderLayer& layer) {
  const float* delta =
      std::visit([&](const auto& mixer) { return add_output(rows, mixer, layer.mixer_post_norm); },
                 layer.mixer);
  add_and_norm(rows, delta, layer.feed_forward_norm);
  return std::visit(
      [&](const auto& part) {
        part.expand(rows, normed_, scratch_of(part));
        return add_output(rows, part, layer.feed_forward_post_norm);
      },
      layer.feed_forward);
}

// Nothing comes between the products of these layers, and a device may overlap them.
LayerRunner::TailLayer LayerRunner::tail_of(const LayerRows& rows,
                                            const DecoderLayer& layer) const {
  const auto* mixer = std::get_if<Gqa>(&layer.mixer);
  const auto* feed_forward = std::get_if<GatedMlp>(&layer.feed_forward);
  const bool plain = layer.mixer_post_norm.weight == nullptr &&
                     layer.feed_forward_norm.weight != nullptr &&
                     layer.feed_forward_post_norm.weight == nullptr;
  if (mixer == nullptr || feed_forward == nullptr || !plain) return {};
  if (rows.max_rows > kTailRows || sharding_.is_cut()) return {};
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
  const Gqa* next_mixer = next != nullptr ? std::get_if<Gqa>(&next->mixer) : nullptr;
  const bool enters = next_mixer != nullptr && next->mixer_norm.weight != nullptr;
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

// What the mixer makes of x before it looks at other rows.
void LayerRunner::project(const LayerRows& rows, const DecoderLayer& layer, const void* x) {
  std::visit([&](const auto& mixer) { mixer.project(rows, x, scratch_of(mixer)); }, layer.mixer);
}

// Adds what a part leaves to the residual, normed where the layer wants that, or returns what is to
// be added with the next norm. The sums have the same bits either way: with many rows the product
// saves the memory traffic, with few the norm reads both while the product's last blocks end. What
// only ranks together know is summed before anything reads it.
template <class Part>
const float* LayerRunner::add_output(const LayerRows& rows, const Part& part,
                                     const Norm& post_norm) {
  const bool normed = post_norm.weight != nullptr;
  if (!normed && rows.max_rows > kFewRows && !sharding_.is_cut()) {
    part.output(rows, scratch_of(part), {residual_, true});
    return nullptr;
  }
  part.output(rows, scratch_of(part), {delta_});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  if (!normed) return delta_;
  norm_rows(rows, delta_, nullptr, post_norm, norm_size(), {added_, DType::kF32});
  return added_;
}

void LayerRunner::sum_over_ranks(const LayerRows& rows) {
  all_reduce(rows.queue, {.comm = sharding_.comm,
                          .counts = rows.counts,
                          .x = delta_,
                          .row_kind = RowKind::kToken,
                          .row_offset = 0,
                          .max_rows = rows.max_rows,
                          .cols = config_.hidden_size});
}

void LayerRunner::add_and_norm(const LayerRows& rows, const float* delta, const Norm& norm) {
  norm_rows(rows, residual_, delta, norm, norm_size(), {normed_, config_.dtype});
}

}  // namespace foretoken
