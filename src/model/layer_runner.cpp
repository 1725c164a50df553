#include "model/layer_runner.h"

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/collectives.h"
#include "kernels/gemm.h"
#include "kernels/layer_tail.h"
#include "kernels/rms_norm.h"
#include "model/rope_table.h"

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

Status LayerRunner::take_scratch(Arena& arena, bool post_norms) {
  const auto rows = static_cast<size_t>(max_rows_);
  const size_t act = dtype_size(config_.dtype);
  const auto hidden = static_cast<size_t>(config_.hidden_size);
  const auto inner = static_cast<size_t>(config_.intermediate_size);
  const auto q = static_cast<size_t>(q_size()), qkv = static_cast<size_t>(qkv_size());
  const char* what = "the model's scratch (lower --max-num-batched-tokens)";
  FT_ASSIGN_OR_RETURN(residual_, arena.take_array<float>(rows * hidden, what));
  FT_ASSIGN_OR_RETURN(normed_, arena.take(rows * hidden * act, what));
  FT_ASSIGN_OR_RETURN(qkv_, arena.take_array<float>(rows * qkv, what));
  FT_ASSIGN_OR_RETURN(q_, arena.take(rows * q * act, what));
  FT_ASSIGN_OR_RETURN(attended_, arena.take(rows * q * act, what));
  FT_ASSIGN_OR_RETURN(delta_, arena.take_array<float>(rows * hidden, what));
  if (post_norms) {
    FT_ASSIGN_OR_RETURN(added_, arena.take_array<float>(rows * hidden, what));
  }
  FT_ASSIGN_OR_RETURN(gated_, arena.take(rows * inner * act, what));
  FT_ASSIGN_OR_RETURN(sync_, arena.take_array<uint32_t>(LayerTailArgs::kSyncWords, what));
  workspace_floats_ =
      attention_.workspace_floats(device_, max_rows_, config_.num_heads, config_.head_dim);
  FT_ASSIGN_OR_RETURN(workspace_,
                      arena.take_array<float>(static_cast<size_t>(workspace_floats_), what));
  const auto sync_rows = static_cast<size_t>(std::min(max_rows_, AttentionArgs::kSyncRows));
  FT_ASSIGN_OR_RETURN(
      attention_sync_,
      arena.take_array<uint32_t>(sync_rows * static_cast<size_t>(config_.num_heads), what));
  return {};
}

const float* LayerRunner::run(const LayerRows& rows, const LayerKv& kv,
                              const DecoderLayerWeights& layer, const void* x,
                              const DecoderLayerWeights* next) {
  FT_CHECK(rows.max_rows > 0 && rows.max_rows <= max_rows_);
  if (x != nullptr) project(rows, layer, x);
  attend(rows, kv, layer);
  if (takes_tail(rows, layer)) return run_tail(rows, layer, next);
  const float* delta =
      add_block(rows, {attended_, layer.o, layer.o_bias, q_size(), layer.attention_post_norm});
  add_and_norm(rows, delta, layer.mlp_norm);
  delta = run_mlp(rows, layer);
  if (next == nullptr) return delta;
  add_and_norm(rows, delta, next->input_norm);
  project(rows, *next, normed_);
  return nullptr;
}

// Nothing comes between the products of these layers, and a device may overlap them.
bool LayerRunner::takes_tail(const LayerRows& rows, const DecoderLayerWeights& layer) const {
  return rows.max_rows <= kTailRows && !sharding_.is_cut() &&
         layer.attention_post_norm == nullptr && layer.mlp_post_norm == nullptr;
}

const float* LayerRunner::run_tail(const LayerRows& rows, const DecoderLayerWeights& layer,
                                   const DecoderLayerWeights* next) {
  LayerTailArgs args{.counts = rows.counts,
                     .x = attended_,
                     .o = layer.o.get(),
                     .gate_up = layer.gate_up.get(),
                     .down = layer.down.get(),
                     .qkv = nullptr,
                     .o_bias = layer.o_bias,
                     .gate_up_bias = layer.gate_up_bias,
                     .down_bias = layer.down_bias,
                     .qkv_bias = nullptr,
                     .mlp_norm = layer.mlp_norm,
                     .next_norm = nullptr,
                     .residual = residual_,
                     .delta = delta_,
                     .normed = normed_,
                     .gated = gated_,
                     .qkv_out = qkv_,
                     .sync = sync_,
                     .max_rows = rows.max_rows,
                     .hidden = config_.hidden_size,
                     .x_size = q_size(),
                     .inner = config_.intermediate_size,
                     .qkv_size = qkv_size(),
                     .eps = config_.rms_norm_eps,
                     .dtype = config_.dtype,
                     .activation = config_.activation};
  if (next != nullptr) {
    FT_CHECK(next->attention_inputs == config_.hidden_size);
    args.qkv = next->qkv.get();
    args.qkv_bias = next->qkv_bias;
    args.next_norm = next->input_norm;
  }
  layer_tail(rows.queue, args);
  return next != nullptr ? nullptr : delta_;
}

// Queries, keys and values of x.
void LayerRunner::project(const LayerRows& rows, const DecoderLayerWeights& layer, const void* x) {
  multiply(rows, x, layer.qkv, layer.qkv_bias, {qkv_}, qkv_size(), layer.attention_inputs);
}

void LayerRunner::attend(const LayerRows& rows, const LayerKv& kv,
                         const DecoderLayerWeights& layer) {
  rope_kv(rows.queue, {.counts = rows.counts,
                       .qkv = qkv_,
                       .q_out = q_,
                       .positions = rows.positions,
                       .kv_slot = kv.kv_slot,
                       .inv_freq = kv.rope.inv_freq,
                       .kv = kv.kv,
                       .max_rows = rows.max_rows,
                       .num_heads = config_.num_heads,
                       .rotary_dim = kv.rope.rotary_dim,
                       .scaling = kv.rope.scaling,
                       .q_norm = layer.q_norm,
                       .k_norm = layer.k_norm,
                       .norm_eps = config_.rms_norm_eps,
                       .position_shift = kv.position_shift});
  attention_.run(rows.queue, {.counts = rows.counts,
                              .q = q_,
                              .out = attended_,
                              .positions = rows.positions,
                              .row_slot = rows.row_slot,
                              .block_tables = kv.block_tables,
                              .workspace = workspace_,
                              .workspace_floats = workspace_floats_,
                              .sync = attention_sync_,
                              .kv = kv.kv,
                              .max_blocks = kv.max_blocks,
                              .max_rows = rows.max_rows,
                              .num_heads = config_.num_heads,
                              .window = kv.window,
                              .scale = config_.attention_scale,
                              .softcap = config_.attention_softcap,
                              .kv_begin = kv.kv_begin,
                              .runs = rows.runs,
                              .repeats = kv.repeats});
}

const float* LayerRunner::run_mlp(const LayerRows& rows, const DecoderLayerWeights& layer) {
  gemm(rows.queue, {.counts = rows.counts,
                    .x = normed_,
                    .weight = layer.gate_up.get(),
                    .y = gated_,
                    .bias = layer.gate_up_bias,
                    .row_kind = RowKind::kToken,
                    .row_offset = 0,
                    .max_rows = rows.max_rows,
                    .n = 2 * config_.intermediate_size,
                    .k = config_.hidden_size,
                    .dtype = config_.dtype,
                    .out_dtype = config_.dtype,
                    .gated = 1,
                    .activation = config_.activation});
  return add_block(
      rows, {gated_, layer.down, layer.down_bias, config_.intermediate_size, layer.mlp_post_norm});
}

// Adds what a block leaves to the residual, normed where the architecture wants that, or returns
// what is to be added with the next norm. The sums have the same bits either way: with many rows
// the product saves the memory traffic, with few the norm reads both while the product's last
// blocks end. What only ranks together know is summed before anything reads it.
const float* LayerRunner::add_block(const LayerRows& rows, const BlockOutput& block) {
  const int32_t hidden = config_.hidden_size;
  if (block.post_norm == nullptr && rows.max_rows > kFewRows && !sharding_.is_cut()) {
    multiply(rows, block.x, block.weight, block.bias, {residual_, true}, hidden, block.inputs);
    return nullptr;
  }
  multiply(rows, block.x, block.weight, block.bias, {delta_}, hidden, block.inputs);
  if (sharding_.is_cut()) {
    all_reduce(rows.queue, {.comm = sharding_.comm,
                            .counts = rows.counts,
                            .x = delta_,
                            .row_kind = RowKind::kToken,
                            .row_offset = 0,
                            .max_rows = rows.max_rows,
                            .cols = hidden});
  }
  if (block.post_norm == nullptr) return delta_;
  norm_rows(rows, delta_, nullptr, block.post_norm, {added_, DType::kF32});
  return added_;
}

void LayerRunner::add_and_norm(const LayerRows& rows, const float* delta, const float* weight) {
  norm_rows(rows, residual_, delta, weight, {normed_, config_.dtype});
}

void LayerRunner::norm_rows(const LayerRows& rows, float* residual, const float* delta,
                            const float* weight, NormOutput out) {
  rms_norm(rows.queue, {.counts = rows.counts,
                        .residual = residual,
                        .delta = delta,
                        .weight = weight,
                        .out = out.rows,
                        .row_index = nullptr,
                        .row_offset = 0,
                        .max_rows = rows.max_rows,
                        .hidden = config_.hidden_size,
                        .eps = config_.rms_norm_eps,
                        .out_dtype = out.dtype});
}

void LayerRunner::multiply(const LayerRows& rows, const void* x, const PackedWeight& weight,
                           const float* bias, Product y, int32_t n, int32_t k) {
  gemm(rows.queue, {.counts = rows.counts,
                    .x = x,
                    .weight = weight.get(),
                    .y = y.rows,
                    .bias = bias,
                    .row_kind = RowKind::kToken,
                    .row_offset = 0,
                    .max_rows = rows.max_rows,
                    .n = n,
                    .k = k,
                    .dtype = config_.dtype,
                    .out_dtype = DType::kF32,
                    .add = y.adds ? 1 : 0});
}

}  // namespace foretoken
