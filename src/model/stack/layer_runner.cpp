#include "model/stack/layer_runner.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/check.h"
#include "kernels/comm/all_reduce_norm.h"
#include "kernels/gemm/layer_tail.h"
#include "kernels/rows/softcap.h"
#include "model/config/rope_table.h"

namespace foretoken {
namespace {

constexpr int32_t kFewRows = 64;

// use(part) of a variant, unless the layer lacks it.
template <class Parts, class Use>
void with_part(const Parts& parts, const Use& use) {
  std::visit(
      [&](const auto& part) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(part)>, Absent>) use(part);
      },
      parts);
}

// Without the adapters where none of them changes these parts.
LayerRows rows_of_feed_forward(const LayerRows& rows) {
  LayerRows own = rows;
  if (rows.lora != nullptr && !rows.lora->feed_forward) own.lora = nullptr;
  return own;
}

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
  const auto make_room = [&](const auto& part) {
    scratch_of(part).fit(part.spec);
    if constexpr (requires { part.num_cut_groups; }) ranks_.fit(part.num_cut_groups);
  };
  with_part(layer.mixer, make_room);
  if (layer.side) make_room(*layer.side);
  with_part(layer.feed_forward, make_room);
  if (layer.beside) make_room(layer.beside->experts);
  if (layer.shortcut) make_room(*layer.shortcut);
  has_shortcuts_ = has_shortcuts_ || layer.shortcut.has_value();
  has_shifts_ = has_shifts_ || layer.feed_forward_shift != nullptr;
  laurel_.fit(layer.laurel);
  row_gate_.fit(layer.mixer_gate);
  row_gate_.fit(layer.feed_forward_gate);
  shared_.fit(layer.shared);
  weighs_residual_ =
      weighs_residual_ || layer.mixer_residual != nullptr || layer.feed_forward_residual != nullptr;
  has_post_norms_ = has_post_norms_ || layer.mixer_post_norm.weight != nullptr ||
                    layer.feed_forward_post_norm.weight != nullptr || layer.input.exists();
}

Status LayerRunner::take_scratch(Arena& arena, LayerRunner* second_lane) {
  FT_RETURN_IF_ERROR(take_rows(arena, second_lane != nullptr ? 2 * max_rows_ : max_rows_));
  FT_RETURN_IF_ERROR(take_parts(arena));
  if (second_lane == nullptr) return {};
  FT_CHECK(second_lane->max_rows_ == max_rows_);
  second_lane->take_rows_behind(*this);
  second_lane->fit_rounded(rounded_columns_);
  return second_lane->take_parts(arena);
}

Status LayerRunner::take_rows(Arena& arena, int32_t num_rows) {
  const ScratchSource source{device_, attention_, arena, config_.dtype, num_rows};
  const int32_t hidden = config_.hidden_size;
  FT_ASSIGN_OR_RETURN(residual_, source.floats(hidden));
  FT_ASSIGN_OR_RETURN(normed_, source.act(hidden));
  FT_ASSIGN_OR_RETURN(delta_, source.floats(hidden));
  if (has_post_norms_) {
    FT_ASSIGN_OR_RETURN(added_, source.floats(hidden));
  }
  return {};
}

void LayerRunner::take_rows_behind(const LayerRunner& first) {
  const int64_t elements = int64_t{max_rows_} * config_.hidden_size;
  residual_ = first.residual_ + elements;
  normed_ = static_cast<std::byte*>(first.normed_) +
            elements * static_cast<int64_t>(dtype_size(config_.dtype));
  delta_ = first.delta_ + elements;
  if (has_post_norms_) added_ = first.added_ + elements;
}

Status LayerRunner::take_parts(Arena& arena) {
  const ScratchSource source{.device = device_,
                             .attention = attention_,
                             .arena = arena,
                             .dtype = config_.dtype,
                             .max_rows = max_rows_,
                             .context = sharding_.context,
                             .experts_comm = sharding_.experts.comm,
                             .ranks_comm = sharding_.comm,
                             .rounds = rounded_columns_ > 0,
                             .kv_block_size = kv_block_size_};
  FT_RETURN_IF_ERROR(ranks_.take(source, sharding_));
  FT_RETURN_IF_ERROR(gqa_.take(source));
  FT_RETURN_IF_ERROR(latent_.take(source));
  FT_RETURN_IF_ERROR(short_conv_.take(source));
  FT_RETURN_IF_ERROR(linear_.take(source));
  FT_RETURN_IF_ERROR(selective_.take(source));
  FT_RETURN_IF_ERROR(wkv_.take(source));
  FT_RETURN_IF_ERROR(compressed_.take(source));
  FT_RETURN_IF_ERROR(gated_mlp_.take(source));
  FT_RETURN_IF_ERROR(plain_mlp_.take(source));
  FT_RETURN_IF_ERROR(experts_.take(source));
  FT_RETURN_IF_ERROR(laurel_.take(source));
  FT_RETURN_IF_ERROR(row_gate_.take(source));
  if (config_.adapters.rank > 0) shared_.fit_embeddings(config_.hidden_size);
  FT_RETURN_IF_ERROR(shared_.take(source));
  if (has_shortcuts_) {
    const auto elements = static_cast<size_t>(max_rows_) * static_cast<size_t>(config_.hidden_size);
    FT_ASSIGN_OR_RETURN(shortcut_, arena.take_array<float>(elements, ScratchSource::kWhat));
  }
  if (has_shifts_) {
    FT_ASSIGN_OR_RETURN(shifted_, source.act(config_.hidden_size));
  }
  if (weighs_residual_) {
    FT_ASSIGN_OR_RETURN(
        zeros_, arena.take_array<float>(static_cast<size_t>(max_rows_), ScratchSource::kWhat));
  }
  if (rounded_columns_ > 0) {
    const int64_t bytes = rounded_rows_bytes(max_rows_, rounded_columns_, config_.dtype);
    FT_ASSIGN_OR_RETURN(rounded_, arena.take(static_cast<size_t>(bytes), ScratchSource::kWhat));
  }
  FT_ASSIGN_OR_RETURN(sync_,
                      arena.take_array<uint32_t>(LayerTailArgs::kSyncWords, ScratchSource::kWhat));
  return {};
}

const float* LayerRunner::run(const LayerRows& given, const LayerKv& kv, const DecoderLayer& layer,
                              const void* x, const DecoderLayer* next) {
  const LayerRows rows = with_ranks(given);
  FT_CHECK(rows.max_rows > 0 && rows.max_rows <= max_rows_);
  if (x != nullptr) project(rows, layer, x);
  if (layer.shared.exists()) return run_shared(rows, kv, layer, next);
  with_part(layer.mixer, [&](const auto& mixer) { mixer.attend(rows, kv, scratch_of(mixer)); });
  if (layer.side) layer.side->attend(rows, kv, scratch_of(*layer.side));
  if (const TailLayer tail = tail_of(rows, layer); tail.mixer != nullptr) {
    return run_tail(rows, tail, layer, next);
  }
  if (layer.mixer_streams.exists()) {
    run_between_streams(rows, layer);
    if (next == nullptr) return nullptr;
    enter(rows, nullptr, *next);
    project(rows, *next, normed_);
    return nullptr;
  }
  const bool normed = norms_behind(rows, layer, next);
  const float* delta = layer.parallel ? run_parallel(rows, layer)
                                      : run_parts(rows, kv, layer, normed ? next : nullptr);
  if (layer.input.exists() || layer.scale != 1 || layer.streams.exists() || layer.joins_shortcut) {
    finish(rows, layer, delta);
    delta = nullptr;
  }
  if (next == nullptr) return delta;
  if (!normed) enter(rows, delta, *next);
  project(rows, *next, normed_);
  return nullptr;
}

void LayerRunner::keep_entries(const LayerRows& given, const LayerKv& kv, const DecoderLayer& layer,
                               const void* x) {
  const LayerRows rows = with_ranks(given);
  FT_CHECK(rows.max_rows > 0 && rows.max_rows <= max_rows_);
  const Gqa& mixer = std::get<Gqa>(layer.mixer);
  mixer.project(rows, x, gqa_);
  mixer.keep(rows, kv, gqa_);
}

void LayerRunner::enter(const LayerRows& rows, const float* delta, const DecoderLayer& layer) {
  if (layer.shared.exists()) return enter_shared(rows, delta, layer);
  if (layer.streams.exists()) carried_->streams.predict(rows, layer.streams, residual_);
  if (layer.mixer_streams.exists()) hyper_->fold(rows, layer.mixer_streams, residual_);
  if (layer.norms_residual) {
    return replace_residual(rows, delta, layer.mixer_norm, layer.mixer_residual_scale);
  }
  if (layer.depth.exists()) {
    return enter_depth(rows, delta, layer.depth.mixer, layer.depth.blocks, layer.mixer_norm);
  }
  add_and_norm(rows, delta, layer.mixer_norm);
}

// Whether the feed-forward part's sum, over the experts of a mixture or over ranks, the residual
// and the norm that follows are one op.
bool LayerRunner::norms_behind(const LayerRows& rows, const DecoderLayer& layer,
                               const DecoderLayer* next) const {
  if (next == nullptr || std::holds_alternative<Absent>(layer.feed_forward)) return false;
  const bool one_norm = layer.joints.sum_ends && next->joints.norm_enters;
  if (!one_norm || !next->mixer_norm.is_rms()) return false;
  if (sharding_.is_cut()) return true;
  const auto* experts = std::get_if<Experts>(&layer.feed_forward);
  return experts != nullptr && !experts->is_exchanged && experts->spec.latent == 0 &&
         config_.residual_scale == 1 && rows.lora == nullptr;
}

// The same of the mixer's sum over ranks and the norm of the feed-forward part.
bool LayerRunner::norms_behind_mixer(const DecoderLayer& layer) const {
  return sharding_.is_cut() && !std::holds_alternative<Absent>(layer.mixer) &&
         !std::holds_alternative<Absent>(layer.feed_forward) && layer.joints.norm_between &&
         layer.feed_forward_norm.is_rms();
}

// What a mixer leaves for the residual; null: the norm of the feed-forward part sums it, or laurel
// has added it.
const float* LayerRunner::mixer_output(const LayerRows& rows, const DecoderLayer& layer) {
  const float* delta = nullptr;
  with_part(layer.mixer, [&](const auto& mixer) {
    if (norms_behind_mixer(layer)) {
      mixer.output(rows, scratch_of(mixer), {delta_});
    } else if (layer.side) {
      mixer.output(rows, scratch_of(mixer), {delta_});
      delta = add_side(rows, *layer.side);
    } else {
      delta = add_part(rows, mixer, layer, layer.mixer_post_norm);
    }
  });
  if (!layer.laurel.exists()) return delta;
  join_laurel(rows, delta);
  return nullptr;
}

// Adds the mixer's output to the residual and norms it; sums_next: the part's own output is summed
// over ranks by the next layer's norm.
void LayerRunner::enter_feed_forward(const LayerRows& rows, const float* delta,
                                     const DecoderLayer& layer, bool sums_next) {
  if (norms_behind_mixer(layer)) {
    sum_and_norm(rows, layer.feed_forward_norm, sums_next);
  } else if (layer.norms_residual) {
    replace_residual(rows, delta, layer.feed_forward_norm, layer.feed_forward_residual_scale);
  } else if (layer.depth.exists()) {
    enter_depth(rows, delta, layer.depth.feed_forward, layer.depth.blocks_behind(),
                layer.feed_forward_norm);
  } else {
    add_and_norm(rows, delta, layer.feed_forward_norm);
  }
  layer.feed_forward_gate.apply(rows, normed_, row_gate_, config_.dtype);
}

// What follows attention, one op after the other. next: as norms_behind promises, or null.
const float* LayerRunner::run_parts(const LayerRows& rows, const LayerKv& kv,
                                    const DecoderLayer& layer, const DecoderLayer* next) {
  weigh_residual(rows, layer.mixer_residual);
  const float* delta = mixer_output(rows, layer);
  const LayerRows own = rows_of_feed_forward(rows);
  const bool sums_next = next != nullptr && sharding_.is_cut();
  with_part(layer.feed_forward, [&](const auto& part) {
    enter_feed_forward(rows, delta, layer, sums_next);
    part.expand(own, shifted(rows, kv.state, layer), scratch_of(part));
    if (layer.shortcut) run_shortcut(own, layer);
    weigh_residual(rows, layer.feed_forward_residual);
    if (layer.beside) {
      part.output(own, scratch_of(part), {delta_});
      delta = run_beside(own, layer);
      return;
    }
    if (sums_next) {
      part.output(own, scratch_of(part), {delta_});
      sum_and_norm(rows, next->mixer_norm, norms_behind_mixer(*next));
      delta = nullptr;
      return;
    }
    if constexpr (std::is_same_v<std::decay_t<decltype(part)>, Experts>) {
      if (next != nullptr) {
        const Norm& norm = next->mixer_norm;
        part.output_normed(own, experts_, residual_, norm, config_.rms_norm_eps, normed_);
        delta = nullptr;
        return;
      }
    }
    delta = add_part(own, part, layer, layer.feed_forward_post_norm);
  });
  return delta;
}

// What a part has left in delta_ goes to the streams.
void LayerRunner::give_to_streams(const LayerRows& rows) {
  if (sharding_.is_cut()) sum_over_ranks(rows);
  hyper_->spread(rows, delta_);
}

// What follows attention where parts read streams and give to them.
void LayerRunner::run_between_streams(const LayerRows& rows, const DecoderLayer& layer) {
  with_part(layer.mixer, [&](const auto& mixer) {
    mixer.output(rows, scratch_of(mixer), {delta_});
    give_to_streams(rows);
  });
  const LayerRows own = rows_of_feed_forward(rows);
  with_part(layer.feed_forward, [&](const auto& part) {
    hyper_->fold(rows, layer.feed_forward_streams, residual_);
    add_and_norm(rows, nullptr, layer.feed_forward_norm);
    part.expand(own, normed_, scratch_of(part));
    part.output(own, scratch_of(part), {delta_});
    give_to_streams(rows);
  });
}

// The sum of what both mixers leave, of which the first has left its own rows in delta_.
const float* LayerRunner::add_side(const LayerRows& rows, const LinearMixer& side) {
  side.output(rows, scratch_of(side), {delta_, true});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  return delta_;
}

// The mixture beside a feed-forward part, which has left its own rows in delta_, and their sum.
const float* LayerRunner::run_beside(const LayerRows& rows, const DecoderLayer& layer) {
  const Beside& beside = *layer.beside;
  const NormOutput act{normed_, config_.dtype};
  if (sharding_.is_cut()) sum_over_ranks(rows);
  norm_rows(rows, delta_, nullptr, beside.other_post_norm, norm_size(), {added_, DType::kF32});
  norm_rows(rows, residual_, nullptr, beside.experts.router_norm, norm_size(), act);
  beside.experts.route(rows, normed_, experts_);
  norm_rows(rows, residual_, nullptr, beside.norm, norm_size(), act);
  beside.experts.expand_routed(rows, normed_, experts_);
  beside.experts.output(rows, experts_, {delta_});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  norm_rows(rows, delta_, nullptr, beside.post_norm, norm_size(), {delta_, DType::kF32});
  norm_rows(rows, added_, delta_, layer.feed_forward_post_norm, norm_size(), {delta_, DType::kF32});
  return delta_;
}

// residual = (residual + delta + the path around the mixer) / sqrt(2).
void LayerRunner::join_laurel(const LayerRows& rows, const float* delta) {
  add_and_norm(rows, delta, {});
  add_and_norm(rows, laurel_.path, {});
  scale_residual(rows, std::sqrt(0.5f));
}

// The mixture on the rows that the feed-forward part reads, kept until a later layer ends.
void LayerRunner::run_shortcut(const LayerRows& rows, const DecoderLayer& layer) {
  layer.shortcut->expand(rows, normed_, experts_);
  layer.shortcut->output(rows, experts_, {shortcut_});
  if (sharding_.is_cut()) sum_over_ranks(rows, shortcut_);
}

// What stands behind both parts of a layer, on the whole residual.
void LayerRunner::finish(const LayerRows& rows, const DecoderLayer& layer, const float* delta) {
  add_and_norm(rows, delta, {});
  if (layer.joins_shortcut) add_and_norm(rows, shortcut_, {});
  if (layer.streams.exists()) {
    carried_->streams.correct(rows, layer.streams, residual_);
    add_and_norm(rows, nullptr, {});
  }
  if (layer.input.exists()) {
    carried_->inputs.mix(rows, layer.input, normed_, delta_);
    norm_rows(rows, delta_, nullptr, layer.input.post_norm, norm_size(), {added_, DType::kF32});
    layer.streams.exists() ? carried_->streams.add(rows, added_) : add_and_norm(rows, added_, {});
  }
  if (layer.scale != 1) scale_residual(rows, layer.scale);
}

void LayerRunner::scale_residual(const LayerRows& rows, float scale) {
  softcap(rows.queue, {.counts = rows.counts,
                       .x = residual_,
                       .row_kind = RowKind::kToken,
                       .row_offset = 0,
                       .max_rows = rows.max_rows,
                       .size = config_.hidden_size,
                       .cap = 0,
                       .scale = scale});
}

// normed = norm(residual + delta), residual = scale * norm(residual + delta).
void LayerRunner::replace_residual(const LayerRows& rows, const float* delta, const Norm& norm,
                                   float scale) {
  norm_residual(rows, delta, norm);
  add_and_norm(rows, nullptr, {});
  if (scale != 1) scale_residual(rows, scale);
}

// Both parts read the residual as it entered the layer, so that it waits for their sum.
const float* LayerRunner::run_parallel(const LayerRows& rows, const DecoderLayer& layer) {
  if (layer.feed_forward_norm.weight != nullptr) {
    add_and_norm(rows, nullptr, layer.feed_forward_norm);
  }
  bool adds = false;
  with_part(layer.mixer, [&](const auto& mixer) {
    mixer.output(rows, scratch_of(mixer), {delta_, adds});
    adds = true;
  });
  const LayerRows own = rows_of_feed_forward(rows);
  with_part(layer.feed_forward, [&](const auto& part) {
    part.expand(own, normed_, scratch_of(part));
    part.output(own, scratch_of(part), {delta_, adds});
    adds = true;
  });
  if (!adds) return nullptr;
  if (sharding_.is_cut()) sum_over_ranks(rows);
  return delta_;
}

// What the mixer makes of x before it looks at other rows.
void LayerRunner::project(const LayerRows& rows, const DecoderLayer& layer, const void* x) {
  if (layer.shared.exists()) return project_shared(rows, layer);
  if (layer.mixer_gate.exists()) {
    FT_CHECK(x == normed_);
    layer.mixer_gate.apply(rows, normed_, row_gate_, config_.dtype);
  }
  if (layer.laurel.exists()) {
    norm_rows(rows, residual_, nullptr, layer.mixer_norm, norm_size(), {laurel_.path, DType::kF32});
    layer.laurel.add_path(rows, x, laurel_);
  }
  with_part(layer.mixer, [&](const auto& mixer) { mixer.project(rows, x, scratch_of(mixer)); });
  if (layer.side) layer.side->project(rows, x, scratch_of(*layer.side));
  if (layer.depth.begins_block) carried_->depth.keep(rows, layer.depth.blocks, residual_);
}

// Adds what a part leaves to the residual, normed where the layer wants that, or returns what is to
// be added with the next norm. The sums have the same bits either way: with many rows the product
// saves the memory traffic, with few the norm reads both while the product's last blocks end. What
// only ranks together know is summed before anything reads it, and so is what adapters add.
template <class Part>
const float* LayerRunner::add_output(const LayerRows& rows, const Part& part,
                                     const Norm& post_norm) {
  const bool normed = post_norm.weight != nullptr;
  const bool as_it_is =
      !normed && !sharding_.is_cut() && config_.residual_scale == 1 && rows.lora == nullptr;
  if (as_it_is && rows.max_rows > kFewRows) {
    part.output(rows, scratch_of(part), {residual_, true});
    return nullptr;
  }
  part.output(rows, scratch_of(part), {delta_});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  if (!normed) return delta_;
  norm_rows(rows, delta_, nullptr, post_norm, norm_size(), {added_, DType::kF32});
  return added_;
}

// The same, or the norm of the residual with it, which then takes its place.
template <class Part>
const float* LayerRunner::add_part(const LayerRows& rows, const Part& part,
                                   const DecoderLayer& layer, const Norm& post_norm) {
  if (!layer.norms_sums) return add_output(rows, part, post_norm);
  add_and_norm(rows, add_output(rows, part, {}), {});
  norm_rows(rows, residual_, nullptr, post_norm, norm_size(), {residual_, DType::kF32});
  return nullptr;
}

void LayerRunner::sum_over_ranks(const LayerRows& rows, float* x) {
  foretoken::sum_over_ranks(rows, x, config_.hidden_size);
}

// residual += the sum of delta_ over the ranks; normed = norm(residual). sums_again: that the
// residual is next read by another such sum over these rows.
void LayerRunner::sum_and_norm(const LayerRows& rows, const Norm& norm, bool sums_again) {
  all_reduce_norm(rows.queue, {.comm = sharding_.comm,
                               .counts = rows.counts,
                               .delta = delta_,
                               .residual = residual_,
                               .weight = norm.weight,
                               .out = normed_,
                               .max_rows = rows.max_rows,
                               .hidden = config_.hidden_size,
                               .eps = config_.rms_norm_eps,
                               .out_dtype = config_.dtype,
                               .delta_scale = config_.residual_scale,
                               .deals_residual = sums_again ? 1 : 0});
}

void LayerRunner::add_and_norm(const LayerRows& rows, const float* delta, const Norm& norm) {
  norm_rows(rows, residual_, delta, norm, norm_size(), {normed_, config_.dtype});
}

void LayerRunner::norm_residual(const LayerRows& rows, const float* delta, const Norm& norm) {
  if (delta != nullptr) add_and_norm(rows, delta, {});
  norm_rows(rows, residual_, nullptr, norm, norm_size(), {residual_, DType::kF32});
}

}  // namespace foretoken
