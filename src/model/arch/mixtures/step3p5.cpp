#include <charconv>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec step_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  if (config.head_gates) attention.gates = HeadGates::kEachHead;
  attention.gate_proj = "g_proj";
  ExpertsSpec experts = experts_of(config);
  experts.base = "";
  experts.router = "moe.gate";
  experts.correction = config.experts.correction ? "moe.router_bias" : nullptr;
  experts.experts = "moe.";
  experts.shared = "share_expert.";
  if (layer.expert_limit > 0) {
    experts.activation = Activation::kClampedSilu;
    experts.clamp = clamp_behind_silu(layer.expert_limit);
  }
  if (layer.shared_limit > 0) experts.shared_clamp = clamp_behind_silu(layer.shared_limit);
  if (layer.experts) return pre_norm_layer(attention, experts);
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  if (layer.shared_limit > 0) {
    mlp.activation = Activation::kClampedSilu;
    mlp.clamp = clamp_behind_silu(layer.shared_limit);
  }
  return pre_norm_layer(attention, mlp);
}

// Lists go on with the layers of draft modules.
void cut_lists(int32_t num_layers, Json* json) {
  for (const char* name : {"layer_types", "mlp_layer_types", "rope_theta", "partial_rotary_factors",
                           "swiglu_limits", "swiglu_limits_shared", "use_rope_layers"}) {
    const auto list = json->find(name);
    if (list == json->end() || !list->is_array()) continue;
    const auto length = static_cast<size_t>(num_layers);
    if (list->size() > length) list->erase(list->begin() + num_layers, list->end());
  }
}

// "3,4,5" as numbers.
Status read_enumeration(const ConfigFields& fields, Json* json) {
  const char* name = "moe_layers_enum";
  const Json* value = fields.find(name);
  if (value == nullptr) return {};
  (*json)["first_k_dense_replace"] = 0;
  if (!value->is_string()) {
    (*json)["moe_layers"] = *value;
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  Json numbers = Json::array();
  for (const char* at = text.data(); at < text.data() + text.size();) {
    int32_t number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    if (error != std::errc() || (end < text.data() + text.size() && *end != ',')) {
      return fields.wrong(name, "numbers of layers with commas between them");
    }
    numbers.push_back(number);
    at = end + 1;
  }
  (*json)["moe_layers"] = std::move(numbers);
  return {};
}

// What the layers of a type have in a field that may be a list; null where no layer is of it.
Status number_of_type(const ConfigFields& fields, const char* name, const char* type, Json* out) {
  const Json* value = fields.find(name);
  const Json* types = fields.find("layer_types");
  if (value == nullptr || !value->is_array()) {
    *out = value != nullptr ? *value : Json();
    return {};
  }
  if (types == nullptr || !types->is_array() || types->size() != value->size()) {
    return fields.wrong(name, "a number, or a list as long as layer_types");
  }
  for (size_t i = 0; i < types->size(); ++i) {
    if ((*types)[i] != type) continue;
    if (!out->is_null() && *out != (*value)[i]) {
      return fields.wrong(name, "the same number for all layers of a type");
    }
    *out = (*value)[i];
  }
  return {};
}

// Numbers of layers become those of types; a scaling is of layers without a window.
Status read_ropes(const ConfigFields& fields, Json* json) {
  const Json* ropes = fields.find("rope_parameters");
  if (ropes != nullptr && (ropes->contains("full_attention") || !ropes->is_object())) return {};
  const Json* scaling = fields.find("rope_scaling");
  if (scaling == nullptr) scaling = ropes;
  Json by_type = Json::object();
  for (const char* type : {"full_attention", "sliding_attention"}) {
    Json theta, part;
    FT_RETURN_IF_ERROR(number_of_type(fields, "rope_theta", type, &theta));
    FT_RETURN_IF_ERROR(number_of_type(fields, "partial_rotary_factors", type, &part));
    const bool scales = scaling != nullptr && scaling->is_object() && *type == 'f';
    Json rope = scales ? *scaling : Json{{"rope_type", "default"}};
    if (rope.contains("low_freq_factor")) rope["rope_type"] = "llama3";
    if (!theta.is_null()) rope["rope_theta"] = theta;
    if (!part.is_null()) rope["partial_rotary_factor"] = part;
    by_type[type] = std::move(rope);
  }
  for (const char* name : {"rope_theta", "rope_scaling"}) json->erase(name);
  (*json)["rope_parameters"] = std::move(by_type);
  return {};
}

Status translate_step(const ConfigFields& fields, Json* json) {
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  constexpr RenamedField kNames[] = {{"num_attention_groups", "num_key_value_heads"},
                                     {"moe_top_k", "num_experts_per_tok"},
                                     {"share_expert_dims", "shared_expert_intermediate_size"},
                                     {"share_expert_dim", "shared_expert_intermediate_size"},
                                     {"norm_expert_weight", "norm_topk_prob"},
                                     {"moe_router_activation", "scoring_func"},
                                     {"moe_router_scaling_factor", "routed_scaling_factor"}};
  take_renamed(fields, kNames, json);
  cut_lists(num_layers, json);
  FT_RETURN_IF_ERROR(read_enumeration(fields, json));
  const auto turning = json->find("use_rope_layers");
  if (turning != json->end() && turning->is_array() && !turning->empty()) {
    (*json)["no_rope_layers"] = *turning;
  }
  const Json cut = *json;
  return read_ropes(ConfigFields(cut, fields.where()), json);
}

Status read_step_heads(const ConfigFields& fields, ModelConfig* config) {
  int32_t heads = config->num_heads, kv_heads = config->num_kv_heads, dim = config->head_dim;
  FT_RETURN_IF_ERROR(fields.read_count("num_sliding_attention_heads", &heads));
  if (const Json* other = fields.find("attention_other_setting")) {
    if (!other->is_object()) return fields.wrong("attention_other_setting", "an object");
    const ConfigFields own(*other, fields.where() + " (attention_other_setting)");
    FT_RETURN_IF_ERROR(own.read_count("num_attention_heads", &heads));
    FT_RETURN_IF_ERROR(own.read_count("num_attention_groups", &kv_heads));
    FT_RETURN_IF_ERROR(own.read_count("head_dim", &dim));
    if (dim != config->head_dim) return own.wrong("head_dim", "that of the other layers");
  }
  for (LayerConfig& layer : config->layers) {
    if (layer.window == 0) continue;
    layer.num_heads = heads;
    layer.num_kv_heads = kv_heads;
  }
  return {};
}

Status read_limits(const ConfigFields& fields, const char* name, float LayerConfig::* to,
                   std::vector<LayerConfig>* layers) {
  const Json* limits = fields.find(name);
  if (limits == nullptr) return {};
  const char* wanted = "a list with a number from 0 on, or null, for each layer";
  if (!limits->is_array() || limits->size() != layers->size()) return fields.wrong(name, wanted);
  for (size_t i = 0; i < layers->size(); ++i) {
    const Json& limit = (*limits)[i];
    if (limit.is_null()) continue;
    if (!limit.is_number() || limit < 0) return fields.wrong(name, wanted);
    (*layers)[i].*to = limit.get<float>();
  }
  return {};
}

Status read_step(const ConfigFields& fields, ModelConfig* config) {
  config->head_gates = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_head_wise_attn_gate", &config->head_gates));
  FT_RETURN_IF_ERROR(read_step_heads(fields, config));
  std::vector<LayerConfig>& layers = config->layers;
  FT_RETURN_IF_ERROR(read_limits(fields, "swiglu_limits", &LayerConfig::expert_limit, &layers));
  FT_RETURN_IF_ERROR(
      read_limits(fields, "swiglu_limits_shared", &LayerConfig::shared_limit, &layers));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.correction = true;
  experts.normalised = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_moe_router_bias", &experts.correction));
  return read_mixture(fields, &experts, &layers);
}

// Dense, with a window and without limits.
LayerSpec step_module(const ModelConfig& config, const LayerConfig& layer) {
  LayerConfig own = layer;
  own.expert_limit = own.shared_limit = 0;
  return step_layer(config, own);
}

constexpr const char* kStepVision[] = {"vision_model.", "vit_large_projector.",
                                       "model.vision_model.", "model.multi_modal_projector."};
constexpr const char* kStepDefaults =
    R"({"max_position_embeddings": 128000, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-5, "first_k_dense_replace": 3})";

}  // namespace

// StepFun 2026: one gate for what each head attended to, more heads in layers with a window, norms
// whose weights are counted from 1, DeepSeek V3's mixtures in tensors of their own, and limits of
// activated gates and of ups in some layers.
constinit const Architecture kStep3p5Architecture = {
    .name = "Step3p5ForCausalLM",
    .description = "Step 3.5 Flash, with its MTP modules as drafters",
    .defaults = kStepDefaults,
    .decoder = {.ignored = kStepVision, .layer = step_layer, .norms = {.offset = 1}},
    .mtp = {.output_norm = "transformer.shared_head.norm",
            .head = "transformer.shared_head.output",
            .layer = step_module,
            .windowed = true},
    .translate = translate_step,
    .read = read_step,
};

// The same with vision, of which only the text part is read.
constinit const Architecture kStep3p7Architecture = {
    .name = "Step3p7ForConditionalGeneration",
    .description = "Step 3.7 Flash; its text part",
    .defaults = kStepDefaults,
    .decoder = {.places = {{{"model.", "lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kStepVision,
                .layer = step_layer,
                .norms = {.offset = 1}},
    .text_config = true,
    .translate = translate_step,
    .read = read_step,
};

}  // namespace foretoken
