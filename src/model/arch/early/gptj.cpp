#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec gptj_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.paired = config.rope.full.rotary_dim;
  attention.base = "attn.";
  attention.o = "out_proj";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "fc_in";
  mlp.down = "fc_out";
  LayerSpec spec = parallel_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  return spec;
}

// The checkpoint has the pieces of four ranks behind one another.
constexpr int32_t kCodeGenPieces = 4;

LayerSpec codegen_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = gptj_layer(config, layer);
  auto& attention = std::get<GqaSpec>(spec.mixer);
  attention.fused = true;
  attention.fused_pieces = kCodeGenPieces;
  return spec;
}

Status translate_gptj(const ConfigFields& fields, nlohmann::json* json) {
  FT_RETURN_IF_ERROR(take_gpt2_names(fields, json));
  int32_t hidden = 0, heads = 0, turning = 0;
  FT_RETURN_IF_ERROR(fields.need_count("n_embd", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("n_head", &heads));
  FT_RETURN_IF_ERROR(fields.need_count("rotary_dim", &turning));
  // Readers cut the product with the size of a head off.
  (*json)["partial_rotary_factor"] = std::min(1.0, (turning + 0.25) * heads / hidden);
  (*json)["mlp_bias"] = true;
  return {};
}

Status translate_codegen(const ConfigFields& fields, nlohmann::json* json) {
  FT_RETURN_IF_ERROR(translate_gptj(fields, json));
  int32_t heads = 0;
  FT_RETURN_IF_ERROR(fields.need_count("n_head", &heads));
  return heads % kCodeGenPieces == 0 ? Status() : fields.wrong("n_head", "a multiple of 4");
}

Status read_gptj(const ConfigFields&, ModelConfig* config) {
  config->head_bias = true;
  return {};
}

}  // namespace

// Wang and Komatsuzaki 2021: attention and MLP read the residual through one norm, and a part of
// each head turns, its pairs side by side.
constinit const Architecture kGptJArchitecture = {
    .name = "GPTJForCausalLM",
    .description = "GPT-J 6B",
    .defaults = R"({"vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16,
                    "n_positions": 2048, "rotary_dim": 64, "activation_function": "gelu_new",
                    "layer_norm_epsilon": 1e-5})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .layer = gptj_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gptj,
    .read = read_gptj,
};

// Nijkamp et al. 2022: the same with one matrix for queries, values and keys.
constinit const Architecture kCodeGenArchitecture = {
    .name = "CodeGenForCausalLM",
    .description = "CodeGen 1 and 2",
    .defaults = R"({"vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16,
                    "n_positions": 2048, "rotary_dim": 64, "activation_function": "gelu_new",
                    "layer_norm_epsilon": 1e-5})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .layer = codegen_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_codegen,
    .read = read_gptj,
};

}  // namespace foretoken
