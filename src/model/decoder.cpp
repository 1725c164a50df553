#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "base/check.h"
#include "device/arena.h"
#include "kernels/attention.h"
#include "kernels/embed.h"
#include "kernels/gated_act.h"
#include "kernels/gemm.h"
#include "kernels/rms_norm.h"
#include "kernels/rope_kv.h"
#include "kernels/softcap.h"
#include "model/decoder_plan.h"
#include "model/decoder_weights.h"
#include "model/rope_table.h"

namespace foretoken {
namespace {

// Buffers of a step. "act" stands for the type of the model.
struct DecoderScratch {
  float* residual = nullptr;   // [max_rows, hidden]
  void* normed = nullptr;      // [max_rows, hidden] act
  float* qkv = nullptr;        // [max_rows, qkv size]
  void* q = nullptr;           // [max_rows, q size] act
  void* attended = nullptr;    // [max_rows, q size] act
  float* delta = nullptr;      // [max_rows, hidden] output of a block
  float* added = nullptr;      // [max_rows, hidden] the same after its own norm, where it has one
  float* gate_up = nullptr;    // [max_rows, 2 * intermediate]
  void* gated = nullptr;       // [max_rows, intermediate] act
  void* head_input = nullptr;  // [max_logits_rows, hidden] act
  float* attention = nullptr;  // [attention_floats]
  int64_t attention_floats = 0;
};

// A rope table in device memory; without frequencies nothing turns.
struct DeviceRope {
  const float* inv_freq = nullptr;
  int32_t rotary_dim = 0;
  float scaling = 1;
};

class Decoder final : public Model {
 public:
  Decoder(Device& device, const ModelConfig& config, const DecoderTraits& traits,
          const LoadOptions& options)
      : device_(device),
        config_(config),
        attention_(*options.attention),
        max_rows_(options.max_rows),
        max_logits_rows_(options.max_logits_rows),
        max_model_len_(options.max_model_len > 0 ? options.max_model_len : config.max_context),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryKind::kDevice),
        plan_(plan_decoder(config, max_model_len_)) {
    if (traits.scaled_embedding) embedding_scale_ = std::sqrt(float(config.hidden_size));
    // transformers rounds the factor to the model's type.
    if (config.dtype == DType::kBF16) {
      embedding_scale_ = bf16_to_float(bf16_from_float(embedding_scale_));
    }
  }

  Status load(const DecoderTraits& traits, WeightLoader& loader);
  Status take_scratch(bool post_norms);

  const ModelConfig& config() const override { return config_; }
  std::vector<KvGroupSpec> kv_groups() const override { return plan_.groups; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  void forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
               const KvCaches& caches, int32_t max_rows) override;
  const void* hidden_states() const override { return scratch_.normed; }
  void logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
              float* out) override;

 private:
  // What the ops of one forward pass have in common.
  struct Pass {
    Queue& queue;
    const StepTensors& tensors;
    const BatchState& batch;
    const KvCaches& caches;
    int32_t max_rows;
  };

  Status upload_ropes(WeightLoader& loader);
  Result<DeviceRope> upload_rope(const RopeConfig& rope, WeightLoader& loader);
  void check_caches(const Pass& pass) const;
  void embed_tokens(const Pass& pass);
  const float* attention_block(const Pass& pass, const LayerPlan& plan,
                               const DecoderLayerWeights& layer);
  const float* mlp_block(const Pass& pass, const DecoderLayerWeights& layer);
  struct NormOutput {
    void* rows;
    DType dtype;
  };
  void add_and_norm(const Pass& pass, const float* delta, const float* weight);
  const float* norm_delta(const Pass& pass, const float* weight);
  void norm(const Pass& pass, float* residual, const float* delta, const float* weight,
            NormOutput out);
  void multiply(const Pass& pass, const void* x, const PackedWeight& weight, const float* bias,
                float* y, int32_t n, int32_t k);

  int32_t q_size() const { return config_.num_heads * config_.head_dim; }
  int32_t kv_size() const { return config_.num_kv_heads * config_.head_dim; }
  int32_t qkv_size() const { return q_size() + 2 * kv_size(); }

  Device& device_;
  const ModelConfig config_;
  const AttentionBackend& attention_;
  const int32_t max_rows_;
  const int32_t max_logits_rows_;
  const int32_t max_model_len_;
  float embedding_scale_ = 1;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  const DecoderPlan plan_;
  DeviceRope ropes_[3];  // by LayerRope; nothing turns by the first
  DecoderWeights weights_;
  DecoderScratch scratch_;
};

Status Decoder::load(const DecoderTraits& traits, WeightLoader& loader) {
  FT_RETURN_IF_ERROR(upload_ropes(loader));
  FT_ASSIGN_OR_RETURN(weights_, load_decoder_weights(weight_arena_, config_, traits, loader));
  weight_bytes_ = loader.bytes_loaded();
  return {};
}

Result<DeviceRope> Decoder::upload_rope(const RopeConfig& rope, WeightLoader& loader) {
  const RopeTable table = make_rope_table(rope, max_model_len_);
  FT_ASSIGN_OR_RETURN(
      void* memory, loader.upload(weight_arena_, table.inv_freq.data(),
                                  table.inv_freq.size() * sizeof(float), "the rotary frequencies"));
  return DeviceRope{static_cast<const float*>(memory), rope.rotary_dim, table.scaling};
}

Status Decoder::upload_ropes(WeightLoader& loader) {
  const RopeConfigs& configs = config_.rope;
  const auto at = [](LayerRope rope) { return static_cast<size_t>(rope); };
  FT_ASSIGN_OR_RETURN(ropes_[at(LayerRope::kFull)], upload_rope(configs.full, loader));
  if (configs.windowed) {
    FT_ASSIGN_OR_RETURN(ropes_[at(LayerRope::kWindowed)], upload_rope(*configs.windowed, loader));
  }
  return {};
}

Status Decoder::take_scratch(bool post_norms) {
  const auto rows = static_cast<size_t>(max_rows_);
  const size_t act = dtype_size(config_.dtype);
  const auto hidden = static_cast<size_t>(config_.hidden_size);
  const auto inner = static_cast<size_t>(config_.intermediate_size);
  const auto q = static_cast<size_t>(q_size()), qkv = static_cast<size_t>(qkv_size());
  const char* what = "the model's scratch (lower --max-num-batched-tokens)";
  Arena& arena = scratch_arena_;
  FT_ASSIGN_OR_RETURN(scratch_.residual, arena.take_array<float>(rows * hidden, what));
  FT_ASSIGN_OR_RETURN(scratch_.normed, arena.take(rows * hidden * act, what));
  FT_ASSIGN_OR_RETURN(scratch_.qkv, arena.take_array<float>(rows * qkv, what));
  FT_ASSIGN_OR_RETURN(scratch_.q, arena.take(rows * q * act, what));
  FT_ASSIGN_OR_RETURN(scratch_.attended, arena.take(rows * q * act, what));
  FT_ASSIGN_OR_RETURN(scratch_.delta, arena.take_array<float>(rows * hidden, what));
  if (post_norms) {
    FT_ASSIGN_OR_RETURN(scratch_.added, arena.take_array<float>(rows * hidden, what));
  }
  FT_ASSIGN_OR_RETURN(scratch_.gate_up, arena.take_array<float>(rows * 2 * inner, what));
  FT_ASSIGN_OR_RETURN(scratch_.gated, arena.take(rows * inner * act, what));
  FT_ASSIGN_OR_RETURN(scratch_.head_input,
                      arena.take(static_cast<size_t>(max_logits_rows_) * hidden * act, what));
  scratch_.attention_floats =
      attention_.workspace_floats(device_, max_rows_, config_.num_heads, config_.head_dim);
  FT_ASSIGN_OR_RETURN(
      scratch_.attention,
      arena.take_array<float>(static_cast<size_t>(scratch_.attention_floats), what));
  return {};
}

void Decoder::check_caches(const Pass& pass) const {
  FT_CHECK(pass.max_rows > 0 && pass.max_rows <= max_rows_);
  FT_CHECK(pass.caches.full != nullptr && pass.caches.full->spec() == plan_.groups[0]);
  if (plan_.groups.size() == 1) return;
  FT_CHECK(pass.caches.windowed != nullptr && pass.caches.windowed->spec() == plan_.groups[1]);
  FT_CHECK(pass.batch.window_tables != nullptr && pass.tensors.window_slot != nullptr);
}

void Decoder::forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
                      const KvCaches& caches, int32_t max_rows) {
  const Pass pass{queue, tensors, batch, caches, max_rows};
  check_caches(pass);
  embed_tokens(pass);
  const float* delta = nullptr;
  for (size_t i = 0; i < plan_.layers.size(); ++i) {
    const DecoderLayerWeights& layer = weights_.layers[i];
    add_and_norm(pass, delta, layer.input_norm);
    delta = attention_block(pass, plan_.layers[i], layer);
    add_and_norm(pass, delta, layer.mlp_norm);
    delta = mlp_block(pass, layer);
  }
  // Completes the residual; `logits` norms only the rows that want logits.
  add_and_norm(pass, delta, weights_.final_norm);
}

void Decoder::logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
                     float* out) {
  FT_CHECK(row_offset >= 0 && max_rows > 0 && max_rows <= max_logits_rows_);
  rms_norm(queue, {.counts = tensors.counts,
                   .residual = scratch_.residual,
                   .delta = nullptr,
                   .weight = weights_.final_norm,
                   .out = scratch_.head_input,
                   .row_index = tensors.logits_rows,
                   .row_offset = row_offset,
                   .max_rows = max_rows,
                   .hidden = config_.hidden_size,
                   .eps = config_.rms_norm_eps,
                   .out_dtype = config_.dtype});
  gemm(queue, {.counts = tensors.counts,
               .x = scratch_.head_input,
               .weight = weights_.head.get(),
               .y = out,
               .bias = nullptr,
               .row_kind = RowKind::kLogits,
               .row_offset = row_offset,
               .max_rows = max_rows,
               .n = config_.vocab_size,
               .k = config_.hidden_size,
               .dtype = config_.dtype,
               .out_dtype = DType::kF32});
  if (config_.logits_softcap == 0) return;
  softcap(queue, {.counts = tensors.counts,
                  .x = out,
                  .row_kind = RowKind::kLogits,
                  .row_offset = row_offset,
                  .max_rows = max_rows,
                  .size = config_.vocab_size,
                  .cap = config_.logits_softcap});
}

void Decoder::embed_tokens(const Pass& pass) {
  embed(pass.queue, {.counts = pass.tensors.counts,
                     .token_ids = pass.tensors.token_ids,
                     .table = weights_.embedding,
                     .out = scratch_.residual,
                     .max_rows = pass.max_rows,
                     .vocab = config_.vocab_size,
                     .hidden = config_.hidden_size,
                     .dtype = config_.dtype,
                     .scale = embedding_scale_});
}

// Returns what is to be added to the residual.
const float* Decoder::attention_block(const Pass& pass, const LayerPlan& plan,
                                      const DecoderLayerWeights& layer) {
  const bool windowed = plan.window > 0;
  const DeviceRope& rope = ropes_[static_cast<size_t>(plan.rope)];
  const KvLayer& kv = (windowed ? pass.caches.windowed : pass.caches.full)->layer(plan.group_index);
  multiply(pass, scratch_.normed, layer.qkv, layer.qkv_bias, scratch_.qkv, qkv_size(),
           config_.hidden_size);
  rope_kv(pass.queue, {.counts = pass.tensors.counts,
                       .qkv = scratch_.qkv,
                       .q_out = scratch_.q,
                       .positions = pass.tensors.positions,
                       .kv_slot = windowed ? pass.tensors.window_slot : pass.tensors.kv_slot,
                       .inv_freq = rope.inv_freq,
                       .kv = kv,
                       .max_rows = pass.max_rows,
                       .num_heads = config_.num_heads,
                       .rotary_dim = rope.rotary_dim,
                       .scaling = rope.scaling,
                       .q_norm = layer.q_norm,
                       .k_norm = layer.k_norm,
                       .norm_eps = config_.rms_norm_eps});
  attention_.run(pass.queue,
                 {.counts = pass.tensors.counts,
                  .q = scratch_.q,
                  .out = scratch_.attended,
                  .positions = pass.tensors.positions,
                  .row_slot = pass.tensors.row_slot,
                  .block_tables = windowed ? pass.batch.window_tables : pass.batch.block_tables,
                  .workspace = scratch_.attention,
                  .workspace_floats = scratch_.attention_floats,
                  .kv = kv,
                  .max_blocks = pass.batch.max_blocks,
                  .max_rows = pass.max_rows,
                  .num_heads = config_.num_heads,
                  .window = plan.window,
                  .scale = config_.attention_scale,
                  .softcap = config_.attention_softcap});
  multiply(pass, scratch_.attended, layer.o, layer.o_bias, scratch_.delta, config_.hidden_size,
           q_size());
  return norm_delta(pass, layer.attention_post_norm);
}

const float* Decoder::mlp_block(const Pass& pass, const DecoderLayerWeights& layer) {
  multiply(pass, scratch_.normed, layer.gate_up, layer.gate_up_bias, scratch_.gate_up,
           2 * config_.intermediate_size, config_.hidden_size);
  gated_act(pass.queue, {.counts = pass.tensors.counts,
                         .gate_up = scratch_.gate_up,
                         .out = scratch_.gated,
                         .max_rows = pass.max_rows,
                         .size = config_.intermediate_size,
                         .activation = config_.activation,
                         .out_dtype = config_.dtype});
  multiply(pass, scratch_.gated, layer.down, layer.down_bias, scratch_.delta, config_.hidden_size,
           config_.intermediate_size);
  return norm_delta(pass, layer.mlp_post_norm);
}

// The output of a block, normed where the architecture wants that.
const float* Decoder::norm_delta(const Pass& pass, const float* weight) {
  if (weight == nullptr) return scratch_.delta;
  norm(pass, scratch_.delta, nullptr, weight, {scratch_.added, DType::kF32});
  return scratch_.added;
}

// residual += delta (when given); normed = norm(residual).
void Decoder::add_and_norm(const Pass& pass, const float* delta, const float* weight) {
  norm(pass, scratch_.residual, delta, weight, {scratch_.normed, config_.dtype});
}

void Decoder::norm(const Pass& pass, float* residual, const float* delta, const float* weight,
                   NormOutput out) {
  rms_norm(pass.queue, {.counts = pass.tensors.counts,
                        .residual = residual,
                        .delta = delta,
                        .weight = weight,
                        .out = out.rows,
                        .row_index = nullptr,
                        .row_offset = 0,
                        .max_rows = pass.max_rows,
                        .hidden = config_.hidden_size,
                        .eps = config_.rms_norm_eps,
                        .out_dtype = out.dtype});
}

void Decoder::multiply(const Pass& pass, const void* x, const PackedWeight& weight,
                       const float* bias, float* y, int32_t n, int32_t k) {
  gemm(pass.queue, {.counts = pass.tensors.counts,
                    .x = x,
                    .weight = weight.get(),
                    .y = y,
                    .bias = bias,
                    .row_kind = RowKind::kToken,
                    .row_offset = 0,
                    .max_rows = pass.max_rows,
                    .n = n,
                    .k = k,
                    .dtype = config_.dtype,
                    .out_dtype = DType::kF32});
}

}  // namespace

Result<std::unique_ptr<Model>> load_decoder(Device& device, const ModelConfig& config,
                                            const DecoderTraits& traits, WeightLoader& loader,
                                            const LoadOptions& options) {
  auto model = std::make_unique<Decoder>(device, config, traits, options);
  FT_RETURN_IF_ERROR(model->load(traits, loader));
  FT_RETURN_IF_ERROR(model->take_scratch(traits.post_norms));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace foretoken
