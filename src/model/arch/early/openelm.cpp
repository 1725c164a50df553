#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr double kMaxWidth = 1 << 24;

LayerSpec openelm_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.base = "attn.";
  attention.fused = true;
  attention.o = "out_proj";
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.base = "ffn.";
  mlp.fused = !config.plain_matrices;
  mlp.gate_up = "proj_1";
  mlp.down = "proj_2";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "attn_norm";
  spec.feed_forward_norm = "ffn_norm";
  return spec;
}

// A list of a number for each layer.
Status read_each(const ConfigFields& fields, const char* name, std::vector<double>* out) {
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_transformer_layers", &num_layers));
  if (fields.find(name) == nullptr) return fields.missing(name);
  FT_RETURN_IF_ERROR(fields.read_positive_list(name, out));
  const bool fits = out->size() == static_cast<size_t>(num_layers) &&
                    std::all_of(out->begin(), out->end(), [](double n) { return n <= kMaxWidth; });
  return fits ? Status() : fields.wrong(name, "a list of a number for each layer");
}

// The nearest multiple, or the next one where that is a tenth too small.
int32_t width_of(double multiplier, int32_t hidden, int32_t divisor) {
  const double wanted = multiplier * hidden, step = divisor;
  double width = std::max(step, std::floor((wanted + step / 2) / step) * step);
  if (width < 0.9 * wanted) width += step;
  return static_cast<int32_t>(std::min(width, kMaxWidth));
}

// Heads and widths of each layer.
Status read_sizes_of_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  std::vector<double> heads, kv_heads, multipliers;
  int32_t hidden = 0, divisor = 256;
  FT_RETURN_IF_ERROR(read_each(fields, "num_query_heads", &heads));
  FT_RETURN_IF_ERROR(read_each(fields, "num_kv_heads", &kv_heads));
  FT_RETURN_IF_ERROR(read_each(fields, "ffn_multipliers", &multipliers));
  FT_RETURN_IF_ERROR(fields.need_count("model_dim", &hidden));
  FT_RETURN_IF_ERROR(fields.read_count("ffn_dim_divisor", &divisor));
  layers->resize(heads.size());
  for (size_t i = 0; i < heads.size(); ++i) {
    LayerConfig& layer = (*layers)[i];
    layer.num_heads = std::max(1, static_cast<int32_t>(heads[i]));
    layer.num_kv_heads = std::max(1, static_cast<int32_t>(kv_heads[i]));
    layer.intermediate_size = width_of(multipliers[i], hidden, divisor);
  }
  return {};
}

// The widest layer stands for the model.
Status translate_openelm(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"model_dim", "hidden_size"},
                                     {"num_transformer_layers", "num_hidden_layers"},
                                     {"max_context_length", "max_position_embeddings"},
                                     {"rope_freq_constant", "rope_theta"},
                                     {"activation_fn_name", "hidden_act"},
                                     {"share_input_output_layers", "tie_word_embeddings"}};
  take_renamed(fields, kNames, json);
  std::vector<LayerConfig> layers;
  FT_RETURN_IF_ERROR(read_sizes_of_layers(fields, &layers));
  LayerConfig widest;
  for (const LayerConfig& layer : layers) {
    widest.num_heads = std::max(widest.num_heads, layer.num_heads);
    widest.num_kv_heads = std::max(widest.num_kv_heads, layer.num_kv_heads);
    widest.intermediate_size = std::max(widest.intermediate_size, layer.intermediate_size);
  }
  (*json)["num_attention_heads"] = widest.num_heads;
  (*json)["num_key_value_heads"] = widest.num_kv_heads;
  (*json)["intermediate_size"] = widest.intermediate_size;
  bool gated = true;
  FT_RETURN_IF_ERROR(fields.read_flag("ffn_with_glu", &gated));
  if (!gated) {
    return unsupported(fields.where() +
                       ": ffn_with_glu false is not supported; use a model like OpenELM 270M");
  }
  return {};
}

Status read_openelm(const ConfigFields& fields, ModelConfig* config) {
  std::vector<LayerConfig> sizes;
  FT_RETURN_IF_ERROR(read_sizes_of_layers(fields, &sizes));
  for (size_t i = 0; i < config->layers.size(); ++i) {
    LayerConfig& layer = config->layers[i];
    layer.num_heads = sizes[i].num_heads;
    layer.num_kv_heads = sizes[i].num_kv_heads;
    layer.intermediate_size = sizes[i].intermediate_size;
  }
  return fields.read_flag("normalize_qk_projections", &config->qk_norm);
}

}  // namespace

// Mehta et al. 2024: Llama's blocks whose heads and MLPs grow from layer to layer; heads of queries
// and keys are normed.
constinit const Architecture kOpenElmArchitecture = {
    .name = "OpenELMForCausalLM",
    .description = "OpenELM",
    .defaults = R"({"vocab_size": 32000, "head_dim": 128, "max_context_length": 2048,
                    "rope_freq_constant": 10000, "activation_fn_name": "swish",
                    "share_input_output_layers": true, "normalize_qk_projections": true,
                    "rms_norm_eps": 1e-6})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "token_embeddings",
                .layer = openelm_layer},
    .translate = translate_openelm,
    .read = read_openelm,
};

}  // namespace foretoken
