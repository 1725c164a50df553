#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Attention whose output passes gates that lie beside the queries, or a gated delta network.
MixerSpec qwen3_next_mixer(const ModelConfig& config, const LayerConfig& layer, LinearFiles files) {
  if (!layer.recurrent) {
    GqaSpec attention = gqa_of(config, layer);
    attention.qk_norm = QkNorm::kHead;
    attention.gates = HeadGates::kEachElement;
    attention.gates_in_q = true;
    return attention;
  }
  LinearSpec linear = gated_delta_of(config);
  linear.files = files;
  if (files != LinearFiles::kByGroup) return linear;
  linear.in_qkv = "in_proj_qkvz";
  linear.in_decay = "in_proj_ba";
  return linear;
}

FeedForwardSpec qwen3_next_experts(const ModelConfig& config, const LayerConfig& layer,
                                   ExpertFiles files) {
  ExpertsSpec experts = experts_of(config);
  experts.files = files;
  experts.shared = "shared_expert.";
  experts.shared_gate = "shared_expert_gate";
  return experts_or_mlp(config, layer, experts);
}

LayerSpec qwen3_next_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(qwen3_next_mixer(config, layer, LinearFiles::kByGroup),
                        qwen3_next_experts(config, layer, ExpertFiles::kEach));
}

LayerSpec qwen3_5_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(qwen3_next_mixer(config, layer, LinearFiles::kApart),
                        gated_mlp_of(config, layer));
}

LayerSpec qwen3_5_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(qwen3_next_mixer(config, layer, LinearFiles::kApart),
                        qwen3_next_experts(config, layer, ExpertFiles::kFused));
}

// Files may say each how many layers attend instead of which; mixtures may say nothing of the width
// of dense layers, which they have not.
Status translate_qwen3_next(const ConfigFields& fields, Json* json) {
  if (fields.find("intermediate_size") == nullptr) {
    const Json* inner = fields.find("moe_intermediate_size");
    if (inner != nullptr) (*json)["intermediate_size"] = *inner;
  }
  int32_t interval = 4;
  FT_RETURN_IF_ERROR(fields.read_count("full_attention_interval", &interval));
  const auto type_of = [&](int32_t i, int32_t) {
    return (i + 1) % interval == 0 ? "full_attention" : "linear_attention";
  };
  return write_layer_types(fields, type_of, json);
}

Status read_qwen3_next(const ConfigFields& fields, ModelConfig* config) {
  bool gated = true;
  FT_RETURN_IF_ERROR(fields.read_flag("attn_output_gate", &gated));
  if (!gated) {
    return unsupported(fields.where() +
                       ": attn_output_gate false is not supported; use a model like Qwen 3 Next, "
                       "whose attention has gates");
  }
  FT_RETURN_IF_ERROR(fields.read_count_or_none("mtp_num_hidden_layers", &config->num_mtp_modules));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  return read_linear_sizes(fields, &config->recurrent);
}

Status read_qwen3_next_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_qwen3_next(fields, config));
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

// Draft modules, which draft_head.h reads, and vision.
constexpr const char* kQwen3NextOthers[] = {"mtp.", "visual.", "model.visual."};

constexpr MtpForm kQwen3NextModule = {.layers = "mtp.layers.",
                                      .counts_on = false,
                                      .projection = "fc",
                                      .embed_norm = "pre_fc_norm_embedding",
                                      .state_norm = "pre_fc_norm_hidden",
                                      .output_norm = "norm",
                                      .chains_normed = true,
                                      .together = "mtp.",
                                      .all_together = true,
                                      .count = 1};

constexpr const char* kQwen3_5Defaults =
    R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "head_dim": 256,
        "partial_rotary_factor": 0.25, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32})";

constexpr const char* kQwen3_5MoeDefaults =
    R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "head_dim": 256,
        "partial_rotary_factor": 0.25, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
        "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512})";

constexpr DecoderTraits qwen3_5_decoder(LayerSpec (*layer)(const ModelConfig&,
                                                           const LayerConfig&)) {
  return {.places = {{{"model.language_model.", "lm_head.weight"}, {"model.", "lm_head.weight"}}},
          .ignored = kQwen3NextOthers,
          .layer = layer,
          .norms = {.offset = 1}};
}

}  // namespace

// Qwen Team 2025: gated delta networks (Yang et al. 2024) in three of four layers, attention with
// gates in the others; mixtures with a shared expert behind a gate; norms add 1 to their weights.
constinit const Architecture kQwen3NextArchitecture = {
    .name = "Qwen3NextForCausalLM",
    .description = "Qwen 3 Next, with its MTP module as a drafter",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "head_dim": 256,
                    "partial_rotary_factor": 0.25, "linear_conv_kernel_dim": 4,
                    "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                    "linear_num_key_heads": 16, "linear_num_value_heads": 32,
                    "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
                    "shared_expert_intermediate_size": 512})",
    .decoder = {.ignored = kQwen3NextOthers, .layer = qwen3_next_layer, .norms = {.offset = 1}},
    .mtp = kQwen3NextModule,
    .recurrent_type = "linear_attention",
    .translate = translate_qwen3_next,
    .read = read_qwen3_next_moe,
};

// Qwen Team 2026: the same blocks, dense, where the first matrices of delta networks lie apart.
constinit const Architecture kQwen3_5Architecture = {
    .name = "Qwen3_5ForCausalLM",
    .description = "Qwen 3.5, with its MTP module as a drafter",
    .defaults = kQwen3_5Defaults,
    .decoder = qwen3_5_decoder(qwen3_5_layer),
    .text_config = true,
    .mtp = kQwen3NextModule,
    .recurrent_type = "linear_attention",
    .translate = translate_qwen3_next,
    .read = read_qwen3_next,
};

// The same with vision, of which only the text part is read.
constinit const Architecture kQwen3_5ConditionalArchitecture = {
    .name = "Qwen3_5ForConditionalGeneration",
    .description = "Qwen 3.5 with vision; its text part, with its MTP module as a drafter",
    .defaults = kQwen3_5Defaults,
    .decoder = qwen3_5_decoder(qwen3_5_layer),
    .text_config = true,
    .mtp = kQwen3NextModule,
    .recurrent_type = "linear_attention",
    .translate = translate_qwen3_next,
    .read = read_qwen3_next,
};

// Mixtures, whose experts lie in one tensor.
constinit const Architecture kQwen3_5MoeArchitecture = {
    .name = "Qwen3_5MoeForCausalLM",
    .description = "Qwen 3.5, mixtures, with their MTP module as a drafter",
    .defaults = kQwen3_5MoeDefaults,
    .decoder = qwen3_5_decoder(qwen3_5_moe_layer),
    .text_config = true,
    .mtp = kQwen3NextModule,
    .recurrent_type = "linear_attention",
    .translate = translate_qwen3_next,
    .read = read_qwen3_next_moe,
};

constinit const Architecture kQwen3_5MoeConditionalArchitecture = {
    .name = "Qwen3_5MoeForConditionalGeneration",
    .description =
        "Qwen 3.5 and 3.6, mixtures with vision; their text part, with their MTP module "
        "as a drafter",
    .defaults = kQwen3_5MoeDefaults,
    .decoder = qwen3_5_decoder(qwen3_5_moe_layer),
    .text_config = true,
    .mtp = kQwen3NextModule,
    .recurrent_type = "linear_attention",
    .translate = translate_qwen3_next,
    .read = read_qwen3_next_moe,
};

}  // namespace foretoken
