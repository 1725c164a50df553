#include "model/arch/llama.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/arena.h"
#include "kernels/attention.h"
#include "kernels/embed.h"
#include "kernels/gated_act.h"
#include "kernels/gemm.h"
#include "kernels/rms_norm.h"
#include "kernels/rope_kv.h"

namespace foretoken {
namespace {

struct LlamaLayer {
  const float* input_norm = nullptr;
  PackedWeight qkv;
  const float* qkv_bias = nullptr;
  PackedWeight o;
  const float* o_bias = nullptr;
  const float* post_norm = nullptr;
  PackedWeight gate_up;
  const float* gate_up_bias = nullptr;
  PackedWeight down;
  const float* down_bias = nullptr;
};

// Buffers of a step. "act" stands for the type of the model.
struct LlamaScratch {
  float* residual = nullptr;   // [max_rows, hidden]
  void* normed = nullptr;      // [max_rows, hidden] act
  float* qkv = nullptr;        // [max_rows, qkv size]
  void* q = nullptr;           // [max_rows, q size] act
  void* attended = nullptr;    // [max_rows, q size] act
  float* delta = nullptr;      // [max_rows, hidden] output of a block
  float* gate_up = nullptr;    // [max_rows, 2 * intermediate]
  void* gated = nullptr;       // [max_rows, intermediate] act
  void* head_input = nullptr;  // [max_logits_rows, hidden] act
  float* attention = nullptr;  // [attention_floats]
  int64_t attention_floats = 0;
};

class LlamaModel final : public Model {
 public:
  LlamaModel(Device& device, const ModelConfig& config, const LoadOptions& options)
      : device_(device),
        config_(config),
        attention_(*options.attention),
        max_rows_(options.max_rows),
        max_logits_rows_(options.max_logits_rows),
        weights_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryKind::kDevice) {}

  Status load(WeightLoader& loader);
  Status take_scratch();

  const ModelConfig& config() const override { return config_; }
  std::vector<KvGroupSpec> kv_groups() const override {
    return {{config_.num_layers, config_.num_kv_heads, config_.head_dim, config_.dtype}};
  }
  const void* hidden_states() const override { return scratch_.normed; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  void forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
               const KvCaches& caches, int32_t max_rows) override;
  void logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
              float* out) override;

 private:
  // What every block of one forward shares.
  struct Pass {
    Queue& queue;
    const StepTensors& tensors;
    const BatchState& batch;
    int32_t max_rows;
  };

  Status load_layer(WeightLoader& loader, int32_t index);
  Status load_rope(WeightLoader& loader);
  void embed_tokens(const Pass& pass);
  void attention_block(const Pass& pass, const LlamaLayer& layer, const KvLayer& kv);
  void mlp_block(const Pass& pass, const LlamaLayer& layer);
  void add_and_norm(const Pass& pass, const float* delta, const float* weight);
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
  Arena weights_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  const void* embedding_ = nullptr;
  const float* inv_freq_ = nullptr;
  std::vector<LlamaLayer> layers_;
  const float* final_norm_ = nullptr;
  PackedWeight head_;
  LlamaScratch scratch_;
};

Status LlamaModel::load(WeightLoader& loader) {
  const char* embedding = "model.embed_tokens.weight";
  const char* head = "lm_head.weight";
  FT_ASSIGN_OR_RETURN(embedding_,
                      loader.table(weights_, embedding, config_.vocab_size, config_.hidden_size));
  FT_RETURN_IF_ERROR(load_rope(loader));
  layers_.resize(static_cast<size_t>(config_.num_layers));
  for (int32_t i = 0; i < config_.num_layers; ++i) FT_RETURN_IF_ERROR(load_layer(loader, i));
  const TensorPart norm[] = {{"model.norm.weight", config_.hidden_size}};
  FT_ASSIGN_OR_RETURN(final_norm_, loader.vector(weights_, norm, 1));
  const TensorPart head_part[] = {
      {config_.tie_word_embeddings ? embedding : head, config_.vocab_size}};
  FT_ASSIGN_OR_RETURN(head_, loader.matrix(head_part, config_.hidden_size));
  if (config_.tie_word_embeddings) loader.ignore(head);
  weight_bytes_ = loader.bytes_loaded();
  return {};
}

Status LlamaModel::load_layer(WeightLoader& loader, int32_t index) {
  LlamaLayer& layer = layers_[static_cast<size_t>(index)];
  const std::string base = "model.layers." + std::to_string(index) + ".";
  const std::string attention = base + "self_attn.";
  const std::string mlp = base + "mlp.";
  const int32_t hidden = config_.hidden_size, inner = config_.intermediate_size;
  const TensorPart input_norm[] = {{base + "input_layernorm.weight", hidden}};
  const TensorPart post_norm[] = {{base + "post_attention_layernorm.weight", hidden}};
  const TensorPart qkv[] = {{attention + "q_proj.weight", q_size()},
                            {attention + "k_proj.weight", kv_size()},
                            {attention + "v_proj.weight", kv_size()}};
  const TensorPart o[] = {{attention + "o_proj.weight", hidden}};
  const TensorPart gate_up[] = {{mlp + "gate_proj.weight", inner}, {mlp + "up_proj.weight", inner}};
  const TensorPart down[] = {{mlp + "down_proj.weight", hidden}};
  FT_ASSIGN_OR_RETURN(layer.input_norm, loader.vector(weights_, input_norm, 1));
  FT_ASSIGN_OR_RETURN(layer.qkv, loader.matrix(qkv, hidden));
  FT_ASSIGN_OR_RETURN(layer.o, loader.matrix(o, q_size()));
  FT_ASSIGN_OR_RETURN(layer.post_norm, loader.vector(weights_, post_norm, 1));
  FT_ASSIGN_OR_RETURN(layer.gate_up, loader.matrix(gate_up, hidden));
  FT_ASSIGN_OR_RETURN(layer.down, loader.matrix(down, inner));
  if (config_.attention_bias) {
    const TensorPart qkv_bias[] = {{attention + "q_proj.bias", q_size()},
                                   {attention + "k_proj.bias", kv_size()},
                                   {attention + "v_proj.bias", kv_size()}};
    const TensorPart o_bias[] = {{attention + "o_proj.bias", hidden}};
    FT_ASSIGN_OR_RETURN(layer.qkv_bias, loader.vector(weights_, qkv_bias, 0));
    FT_ASSIGN_OR_RETURN(layer.o_bias, loader.vector(weights_, o_bias, 0));
  }
  if (config_.mlp_bias) {
    const TensorPart gate_up_bias[] = {{mlp + "gate_proj.bias", inner},
                                       {mlp + "up_proj.bias", inner}};
    const TensorPart down_bias[] = {{mlp + "down_proj.bias", hidden}};
    FT_ASSIGN_OR_RETURN(layer.gate_up_bias, loader.vector(weights_, gate_up_bias, 0));
    FT_ASSIGN_OR_RETURN(layer.down_bias, loader.vector(weights_, down_bias, 0));
  }
  // Older exports store this buffer; it follows from the config.
  loader.ignore(attention + "rotary_emb.inv_freq");
  return {};
}

Status LlamaModel::load_rope(WeightLoader& loader) {
  std::vector<float> inv_freq(static_cast<size_t>(config_.head_dim / 2));
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config_.head_dim);
    inv_freq[i] = 1.0f / std::pow(config_.rope_theta, exponent);
  }
  FT_ASSIGN_OR_RETURN(void* memory,
                      loader.upload(weights_, inv_freq.data(), inv_freq.size() * sizeof(float),
                                    "the rotary frequencies"));
  inv_freq_ = static_cast<const float*>(memory);
  return {};
}

Status LlamaModel::take_scratch() {
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

void LlamaModel::forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
                         const KvCaches& caches, int32_t max_rows) {
  FT_CHECK(max_rows > 0 && max_rows <= max_rows_ && caches.full != nullptr);
  const KvCache& cache = *caches.full;
  FT_CHECK(cache.spec() == kv_groups().front());
  const Pass pass{queue, tensors, batch, max_rows};
  embed_tokens(pass);
  const float* delta = nullptr;
  for (int32_t i = 0; i < config_.num_layers; ++i) {
    const LlamaLayer& layer = layers_[static_cast<size_t>(i)];
    add_and_norm(pass, delta, layer.input_norm);
    attention_block(pass, layer, cache.layer(i));
    add_and_norm(pass, scratch_.delta, layer.post_norm);
    mlp_block(pass, layer);
    delta = scratch_.delta;
  }
  // Completes the residual; `logits` norms only the rows that want logits.
  add_and_norm(pass, delta, final_norm_);
}

void LlamaModel::logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                        int32_t max_rows, float* out) {
  FT_CHECK(row_offset >= 0 && max_rows > 0 && max_rows <= max_logits_rows_);
  rms_norm(queue, {.counts = tensors.counts,
                   .residual = scratch_.residual,
                   .delta = nullptr,
                   .weight = final_norm_,
                   .out = scratch_.head_input,
                   .row_index = tensors.logits_rows,
                   .row_offset = row_offset,
                   .max_rows = max_rows,
                   .hidden = config_.hidden_size,
                   .eps = config_.rms_norm_eps,
                   .out_dtype = config_.dtype});
  gemm(queue, {.counts = tensors.counts,
               .x = scratch_.head_input,
               .weight = head_.get(),
               .y = out,
               .bias = nullptr,
               .row_kind = RowKind::kLogits,
               .row_offset = row_offset,
               .max_rows = max_rows,
               .n = config_.vocab_size,
               .k = config_.hidden_size,
               .dtype = config_.dtype,
               .out_dtype = DType::kF32});
}

void LlamaModel::embed_tokens(const Pass& pass) {
  embed(pass.queue, {.counts = pass.tensors.counts,
                     .token_ids = pass.tensors.token_ids,
                     .table = embedding_,
                     .out = scratch_.residual,
                     .max_rows = pass.max_rows,
                     .vocab = config_.vocab_size,
                     .hidden = config_.hidden_size,
                     .dtype = config_.dtype});
}

void LlamaModel::attention_block(const Pass& pass, const LlamaLayer& layer, const KvLayer& kv) {
  multiply(pass, scratch_.normed, layer.qkv, layer.qkv_bias, scratch_.qkv, qkv_size(),
           config_.hidden_size);
  rope_kv(pass.queue, {.counts = pass.tensors.counts,
                       .qkv = scratch_.qkv,
                       .q_out = scratch_.q,
                       .positions = pass.tensors.positions,
                       .kv_slot = pass.tensors.kv_slot,
                       .inv_freq = inv_freq_,
                       .kv = kv,
                       .max_rows = pass.max_rows,
                       .num_heads = config_.num_heads,
                       .rotary_dim = config_.head_dim,
                       .scaling = 1});
  attention_.run(pass.queue, {.counts = pass.tensors.counts,
                              .q = scratch_.q,
                              .out = scratch_.attended,
                              .positions = pass.tensors.positions,
                              .row_slot = pass.tensors.row_slot,
                              .block_tables = pass.batch.block_tables,
                              .workspace = scratch_.attention,
                              .workspace_floats = scratch_.attention_floats,
                              .kv = kv,
                              .max_blocks = pass.batch.max_blocks,
                              .max_rows = pass.max_rows,
                              .num_heads = config_.num_heads,
                              .window = 0,
                              .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))});
  multiply(pass, scratch_.attended, layer.o, layer.o_bias, scratch_.delta, config_.hidden_size,
           q_size());
}

void LlamaModel::mlp_block(const Pass& pass, const LlamaLayer& layer) {
  multiply(pass, scratch_.normed, layer.gate_up, layer.gate_up_bias, scratch_.gate_up,
           2 * config_.intermediate_size, config_.hidden_size);
  gated_act(pass.queue, {.counts = pass.tensors.counts,
                         .gate_up = scratch_.gate_up,
                         .out = scratch_.gated,
                         .max_rows = pass.max_rows,
                         .size = config_.intermediate_size,
                         .activation = Activation::kSilu,
                         .out_dtype = config_.dtype});
  multiply(pass, scratch_.gated, layer.down, layer.down_bias, scratch_.delta, config_.hidden_size,
           config_.intermediate_size);
}

// residual += delta (when given); normed = norm(residual).
void LlamaModel::add_and_norm(const Pass& pass, const float* delta, const float* weight) {
  rms_norm(pass.queue, {.counts = pass.tensors.counts,
                        .residual = scratch_.residual,
                        .delta = delta,
                        .weight = weight,
                        .out = scratch_.normed,
                        .row_index = nullptr,
                        .row_offset = 0,
                        .max_rows = pass.max_rows,
                        .hidden = config_.hidden_size,
                        .eps = config_.rms_norm_eps,
                        .out_dtype = config_.dtype});
}

void LlamaModel::multiply(const Pass& pass, const void* x, const PackedWeight& weight,
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

int64_t llama_weight_bytes(const ModelConfig& config) {
  const double hidden = config.hidden_size, inner = config.intermediate_size;
  const double q = double(config.num_heads) * config.head_dim;
  const double kv = double(config.num_kv_heads) * config.head_dim;
  double layer = (q + 2 * kv) * hidden + q * hidden + 3 * inner * hidden + 2 * hidden;
  if (config.attention_bias) layer += q + 2 * kv + hidden;
  if (config.mlp_bias) layer += 2 * inner + hidden;
  // A tied head is packed beside the table.
  const double count = 2 * double(config.vocab_size) * hidden + config.num_layers * layer + hidden;
  const double bytes = count * static_cast<double>(dtype_size(config.dtype));
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

Result<std::unique_ptr<Model>> load_llama(Device& device, const ModelConfig& config,
                                          WeightLoader& loader, const LoadOptions& options) {
  auto model = std::make_unique<LlamaModel>(device, config, options);
  FT_RETURN_IF_ERROR(model->load(loader));
  FT_RETURN_IF_ERROR(model->take_scratch());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace foretoken
