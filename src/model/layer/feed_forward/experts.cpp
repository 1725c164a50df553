#include "model/layer/feed_forward/experts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/comm/collectives.h"
#include "kernels/comm/expert_exchange.h"
#include "kernels/experts/expert_gemm.h"
#include "kernels/experts/route_experts.h"
#include "kernels/rows/move_rows.h"
#include "kernels/rows/softcap.h"

namespace foretoken {

void Experts::Scratch::fit(const ExpertsSpec& part) {
  num_engines_ = std::max(num_engines_, part.num_engines);
  count_ = std::max(count_, part.choices());
  top_k_ = std::max(top_k_, part.top_k);
  inputs_ = std::max(inputs_, part.inputs);
  width_ = std::max(width_, part.width());
  latent_ = std::max(latent_, part.latent);
  norms_latent_ = norms_latent_ || part.latent_norm != nullptr;
  inner_ = std::max(inner_, part.inner);
  has_shared_ = has_shared_ || part.shared_inner > 0;
  keeps_apart_ = keeps_apart_ || (part.num_engines > 1 && part.zero_count > 0);
  if (part.shared_inner > 0) shared.fit(shared_mlp_of(part));
}

Status Experts::Scratch::take(const ScratchSource& source) {
  if (count_ == 0) return {};
  const char* what = ScratchSource::kWhat;
  comm = source.experts_comm;
  ranks = source.ranks_comm;
  const ScratchSource all{source.device, source.attention, source.arena, source.dtype,
                          source.max_rows * num_engines_};
  const auto choices = [&](const ScratchSource& rows) {
    return static_cast<size_t>(rows.max_rows) * static_cast<size_t>(top_k_);
  };
  capacity_rows = source.max_rows;
  FT_ASSIGN_OR_RETURN(logits, source.floats(count_));
  FT_ASSIGN_OR_RETURN(weights, source.floats(top_k_));
  FT_ASSIGN_OR_RETURN(ids, source.arena.take_array<int32_t>(choices(source), what));
  FT_ASSIGN_OR_RETURN(entries, source.arena.take_array<int32_t>(choices(all), what));
  FT_ASSIGN_OR_RETURN(begins,
                      source.arena.take_array<int32_t>(static_cast<size_t>(count_) + 1, what));
  FT_ASSIGN_OR_RETURN(gated, all.act(int64_t{top_k_} * inner_));
  FT_ASSIGN_OR_RETURN(products, all.act(int64_t{top_k_} * width_));
  if (source.rounds) FT_RETURN_IF_ERROR(take_rounded(all));
  if (num_engines_ > 1) FT_RETURN_IF_ERROR(take_exchange(all));
  if (latent_ > 0) {
    FT_ASSIGN_OR_RETURN(latent, source.floats(latent_));
    FT_ASSIGN_OR_RETURN(latent_act, source.act(latent_));
    if (norms_latent_) {
      FT_ASSIGN_OR_RETURN(latent_own, source.act(latent_));
    }
  }
  if (!has_shared_ && !keeps_apart_) return {};
  FT_ASSIGN_OR_RETURN(shared_out, source.floats(inputs_));
  if (!has_shared_) return {};
  FT_ASSIGN_OR_RETURN(shared_logit, source.floats(1));
  return shared.take(source);
}

// `all`: for the rows of all engines.
Status Experts::Scratch::take_rounded(const ScratchSource& all) {
  const int64_t x = rounded_rows_bytes(all.max_rows, width_, all.dtype);
  const int64_t entries_x = rounded_rows_bytes(int64_t{all.max_rows} * top_k_, inner_, all.dtype);
  FT_ASSIGN_OR_RETURN(
      rounded, all.arena.take(static_cast<size_t>(std::max(x, entries_x)), ScratchSource::kWhat));
  return {};
}

// `all`: for the rows of all engines.
Status Experts::Scratch::take_exchange(const ScratchSource& all) {
  const char* what = ScratchSource::kWhat;
  const auto choices = static_cast<size_t>(all.max_rows) * static_cast<size_t>(top_k_);
  FT_ASSIGN_OR_RETURN(exchanged.counts, all.arena.take_array<StepCounts>(1, what));
  FT_ASSIGN_OR_RETURN(exchanged.begins,
                      all.arena.take_array<int32_t>(static_cast<size_t>(num_engines_) + 1, what));
  FT_ASSIGN_OR_RETURN(exchanged.x, all.act(width_));
  FT_ASSIGN_OR_RETURN(exchanged.ids, all.arena.take_array<int32_t>(choices, what));
  FT_ASSIGN_OR_RETURN(exchanged.weights, all.floats(top_k_));
  FT_ASSIGN_OR_RETURN(sums, all.floats(width_));
  const auto own = static_cast<size_t>(capacity_rows) * static_cast<size_t>(width_);
  FT_ASSIGN_OR_RETURN(returns, all.arena.take_array<float>(2 * own, what));
  return {};
}

ExpertLists Experts::lists(const Scratch& scratch) const {
  return {scratch.begins, scratch.entries, static_cast<int32_t>(own.count), spec.top_k,
          spec.choices()};
}

// Those that this rank's experts compute.
LayerRows Experts::rows_of_experts(const LayerRows& rows, const Scratch& scratch) const {
  if (!is_exchanged) return rows;
  return {.queue = rows.queue,
          .counts = scratch.exchanged.counts,
          .positions = nullptr,
          .row_slot = nullptr,
          .max_rows = rows.max_rows * spec.num_engines};
}

void Experts::route(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, router, {scratch.logits}, dtype, true);
  if (router_norm.weight != nullptr) {
    softcap(rows.queue, {.counts = rows.counts,
                         .x = scratch.logits,
                         .row_kind = RowKind::kToken,
                         .row_offset = 0,
                         .max_rows = rows.max_rows,
                         .size = spec.choices(),
                         .cap = 0,
                         .scale = 1 / std::sqrt(static_cast<float>(spec.inputs))});
  }
  route_experts(rows.queue, {.counts = rows.counts,
                             .logits = scratch.logits,
                             .correction = correction,
                             .ids = scratch.ids,
                             .weights = scratch.weights,
                             .lists = lists(scratch),
                             .first_expert = static_cast<int32_t>(own.begin),
                             .num_experts = spec.choices(),
                             .max_rows = rows.max_rows,
                             .score = spec.score,
                             .num_groups = spec.num_groups,
                             .top_groups = spec.top_groups,
                             .groups = spec.groups,
                             .normalised = spec.normalised ? 1 : 0,
                             .scale = spec.scale,
                             .jitter = spec.jitter,
                             .weight_scales = weight_scales,
                             .table = table,
                             .token_ids = rows.token_ids});
}

// Puts x where experts without weights would leave it, before the others write their products.
void Experts::keep_rows(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  for (int32_t slot = 0; own_zeros > 0 && slot < spec.top_k; ++slot) {
    move_rows(rows.queue, {.counts = rows.counts,
                           .in = x,
                           .out = scratch.products,
                           .from = nullptr,
                           .to = nullptr,
                           .row_kind = RowKind::kToken,
                           .max_rows = rows.max_rows,
                           .width = spec.inputs,
                           .out_stride = spec.top_k * spec.inputs,
                           .out_offset = slot * spec.inputs,
                           .in_dtype = dtype,
                           .out_dtype = dtype});
  }
}

// What those leave of an engine's own rows, which go to no other engine.
void Experts::sum_kept(const LayerRows& rows, const Scratch& scratch) const {
  CombineExpertsArgs args = combination(rows, scratch, {scratch.shared_out});
  args.shared = args.shared_gate = nullptr;
  args.first_expert = spec.count;
  args.num_own = own_zeros;
  combine_experts(rows.queue, args);
}

void Experts::expand_routed(const LayerRows& rows, const void* x, const Scratch& scratch,
                            bool is_routed_x) const {
  keep_rows(rows, x, scratch);
  if (keeps_apart()) sum_kept(rows, scratch);
  const void* routed = spec.latent > 0 ? make_latents(rows, x, scratch) : x;
  if (is_exchanged) exchange(rows, routed, scratch);
  const LayerRows all = rows_of_experts(rows, scratch);
  const float* weights = is_exchanged ? scratch.exchanged.weights : scratch.weights;
  const void* own_x = rounded_x(all, is_exchanged ? scratch.exchanged.x : routed, scratch);
  const bool alike = shared.gate_up.weight.takes_rounded() == gate_up.takes_rounded();
  const void* shared_x = !joins_experts() ? nullptr
                         : alike          ? own_x
                                          : x_of(rows, x, shared.gate_up, dtype);
  expert_gemm(rows.queue, {.counts = all.counts,
                           .x = own_x,
                           .weight = gate_up.get(),
                           .y = scratch.gated,
                           .bias = gate_up_bias,
                           .x_scales = spec.weighs_input ? weights : nullptr,
                           .lists = lists(scratch),
                           .max_rows = all.max_rows,
                           .n = 2 * spec.inner,
                           .k = spec.width(),
                           .dtype = dtype,
                           .gated = 1,
                           .activation = spec.activation,
                           .clamp = spec.clamp,
                           .shared = with_experts(shared_x, shared.gate_up, scratch.shared.gated),
                           .rows_are_old = is_routed_x && shared_x == x ? 1 : 0,
                           .next_shared = joins_experts() ? shared.down.weight.get() : nullptr,
                           .next_n = shared.down.outputs,
                           .next_k = shared.down.inputs});
  if (spec.shared_inner == 0) return;
  if (!joins_experts()) shared.expand(rows, x, scratch.shared);
  if (shared_gate.outputs > 0) multiply(rows, x, shared_gate, {scratch.shared_logit}, dtype);
}

// Whether the shared expert is computed by the ops of the others: it has no other rows, no part
// between its matrices and no adapters.
bool Experts::joins_experts() const {
  return spec.shared_inner > 0 && spec.latent == 0 && !is_exchanged && !shared.spec.apart() &&
         shared.gate_up.lora.matrices == nullptr && shared.down.lora.matrices == nullptr &&
         shared.spec.activation == spec.activation && has_gated_form(spec.activation);
}

// What experts multiply with, rounded where their matrices take it so.
const void* Experts::rounded_x(const LayerRows& all, const void* x, const Scratch& scratch) const {
  if (!gate_up.takes_rounded()) return x;
  return rounded_rows(all, x, scratch.rounded, spec.width(), dtype, 1, gate_up.input_scale());
}

const void* Experts::rounded_gated(const LayerRows& all, const Scratch& scratch) const {
  if (!down.takes_rounded()) return scratch.gated;
  return rounded_rows(all, scratch.gated, scratch.rounded, spec.inner, dtype, spec.top_k,
                      down.input_scale());
}

// A matrix of the shared expert, where that is so.
SharedExpert Experts::with_experts(const void* x, const Linear& linear, void* y) const {
  if (!joins_experts()) return {};
  return {x, linear.weight.get(), y, linear.bias, linear.outputs, linear.inputs};
}

// Brings the rows of all engines here and lists them for this rank's experts.
void Experts::exchange(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  dispatch_rows(rows.queue, {.comm = scratch.comm,
                             .counts = rows.counts,
                             .x = x,
                             .ids = scratch.ids,
                             .weights = scratch.weights,
                             .out = scratch.exchanged,
                             .max_rows = rows.max_rows,
                             .capacity_rows = scratch.capacity_rows,
                             .hidden = spec.width(),
                             .top_k = spec.top_k,
                             .dtype = dtype});
  const LayerRows all = rows_of_experts(rows, scratch);
  route_experts(rows.queue, {.counts = all.counts,
                             .logits = nullptr,
                             .correction = nullptr,
                             .ids = scratch.exchanged.ids,
                             .weights = scratch.exchanged.weights,
                             .lists = lists(scratch),
                             .first_expert = static_cast<int32_t>(own.begin),
                             .num_experts = spec.choices(),
                             .max_rows = all.max_rows,
                             .score = spec.score});
}

void Experts::output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
  multiply_down(rows, scratch);
  if (spec.latent > 0) return widen_latents(rows, scratch, to);
  combine(rows, scratch, to);
}

const void* Experts::make_latents(const LayerRows& rows, const void* x,
                                  const Scratch& scratch) const {
  multiply(rows, x, to_latent, {scratch.latent}, dtype);
  cast_rows(rows, {scratch.latent, DType::kF32, scratch.latent_act, dtype, spec.latent});
  return scratch.latent_act;
}

// This rank's columns of the normed sum over all ranks.
const void* Experts::norm_latents(const LayerRows& rows, const Scratch& scratch) const {
  if (sums_latents) {
    all_reduce(rows.queue, {.comm = scratch.ranks,
                            .counts = rows.counts,
                            .x = scratch.latent,
                            .row_kind = RowKind::kToken,
                            .row_offset = 0,
                            .max_rows = rows.max_rows,
                            .cols = spec.latent});
  }
  norm_rows(rows, scratch.latent, nullptr, latent_norm, {spec.latent, eps},
            {scratch.latent_act, dtype});
  if (!sums_latents) return scratch.latent_act;
  const auto* first = static_cast<const std::byte*>(scratch.latent_act) +
                      latent_columns.begin * static_cast<int64_t>(dtype_size(dtype));
  cast_rows(rows, {first, dtype, scratch.latent_own, dtype, of_latent.inputs, spec.latent});
  return scratch.latent_own;
}

// The sum of what experts leave, widened, and the shared one's.
void Experts::widen_latents(const LayerRows& rows, const Scratch& scratch, Sum to) const {
  combine(rows, scratch, {scratch.latent});
  const void* sums = scratch.latent_act;
  if (latent_norm.weight != nullptr) {
    sums = norm_latents(rows, scratch);
  } else {
    cast_rows(rows, {scratch.latent, DType::kF32, scratch.latent_act, dtype, spec.latent});
  }
  multiply(rows, sums, of_latent, to, dtype);
  if (spec.shared_inner > 0) shared.output(rows, scratch.shared, {to.rows, true});
}

void Experts::output_normed(const LayerRows& rows, const Scratch& scratch, float* residual,
                            const Norm& norm, float norm_eps, void* normed) const {
  FT_CHECK(!is_exchanged && spec.latent == 0 && norm.is_rms());
  multiply_down(rows, scratch);
  CombineExpertsArgs args = combination(rows, scratch, {residual, true});
  args.norm = norm.weight;
  args.norm_eps = norm_eps;
  args.normed = normed;
  combine_experts(rows.queue, args);
}

void Experts::multiply_down(const LayerRows& rows, const Scratch& scratch) const {
  if (spec.shared_inner > 0 && spec.latent == 0 && !joins_experts()) {
    shared.output(rows, scratch.shared, {scratch.shared_out, keeps_apart()});
  }
  const LayerRows all = rows_of_experts(rows, scratch);
  const void* shared_x =
      joins_experts() ? x_of(rows, scratch.shared.gated, shared.down, dtype) : nullptr;
  expert_gemm(rows.queue, {.counts = all.counts,
                           .x = rounded_gated(all, scratch),
                           .weight = down.get(),
                           .y = scratch.products,
                           .bias = down_bias,
                           .x_scales = nullptr,
                           .lists = lists(scratch),
                           .max_rows = all.max_rows,
                           .n = spec.width(),
                           .k = spec.inner,
                           .dtype = dtype,
                           .by_entry = 1,
                           .shared = with_experts(shared_x, shared.down, scratch.shared_out),
                           .lists_are_old = 1});
}

CombineExpertsArgs Experts::combination(const LayerRows& rows, const Scratch& scratch,
                                        Sum to) const {
  return {.counts = rows.counts,
          .y = scratch.products,
          .ids = scratch.ids,
          .weights = spec.weighs_input ? nullptr : scratch.weights,
          .shared = adds_shared() ? scratch.shared_out : sum_bias,
          .shared_gate = adds_shared() && weighs_shared() ? scratch.shared_logit : nullptr,
          .out = to.rows,
          .first_expert = static_cast<int32_t>(own.begin),
          .num_own = static_cast<int32_t>(own.count) + own_zeros,
          .top_k = spec.top_k,
          .max_rows = rows.max_rows,
          .hidden = spec.width(),
          .dtype = dtype,
          .add = to.adds ? 1 : 0,
          .shared_is_one = !adds_shared() && sum_bias != nullptr ? 1 : 0};
}

// The sum of what experts leave, as wide as they are, and of what is added beside them.
void Experts::combine(const LayerRows& rows, const Scratch& scratch, Sum to) const {
  if (is_exchanged) return combine_exchanged(rows, scratch, to);
  combine_experts(rows.queue, combination(rows, scratch, to));
}

// This rank's sums of all rows, and of its own rows the sums of all ranks.
void Experts::combine_exchanged(const LayerRows& rows, const Scratch& scratch, Sum to) const {
  const LayerRows all = rows_of_experts(rows, scratch);
  combine_experts(rows.queue, {.counts = all.counts,
                               .y = scratch.products,
                               .ids = scratch.exchanged.ids,
                               .weights = spec.weighs_input ? nullptr : scratch.exchanged.weights,
                               .shared = nullptr,
                               .shared_gate = nullptr,
                               .out = scratch.sums,
                               .first_expert = static_cast<int32_t>(own.begin),
                               .num_own = static_cast<int32_t>(own.count),
                               .top_k = spec.top_k,
                               .max_rows = all.max_rows,
                               .hidden = spec.width(),
                               .dtype = dtype});
  return_rows(rows.queue,
              {.comm = scratch.comm,
               .begins = scratch.exchanged.begins,
               .sums = scratch.sums,
               .scratch = scratch.returns,
               .shared = adds_shared() || keeps_apart() ? scratch.shared_out : nullptr,
               .shared_gate = adds_shared() && weighs_shared() ? scratch.shared_logit : nullptr,
               .out = to.rows,
               .max_rows = rows.max_rows,
               .hidden = spec.width(),
               .add = to.adds ? 1 : 0});
}

}  // namespace foretoken
