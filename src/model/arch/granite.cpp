#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Status read_granite(const ConfigFields& fields, ModelConfig* config) {
  double embedding = 1, residual = 1, logits = 1, attention = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("embedding_multiplier", &embedding));
  FT_RETURN_IF_ERROR(fields.read_positive("residual_multiplier", &residual));
  FT_RETURN_IF_ERROR(fields.read_positive("logits_scaling", &logits));
  FT_RETURN_IF_ERROR(fields.read_positive("attention_multiplier", &attention));
  config->embedding_scale = static_cast<float>(embedding);
  config->residual_scale = static_cast<float>(residual);
  config->logits_scale = static_cast<float>(1 / logits);
  config->attention_scale = static_cast<float>(attention);
  return {};
}

// Gates and ups of all experts are one tensor, and so are those of the shared one.
LayerSpec granite_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kFused;
  experts.base = "";
  experts.router = "block_sparse_moe.router.layer";
  experts.experts = "block_sparse_moe.";
  experts.gate_up = "input_linear.weight";
  experts.down = "output_linear.weight";
  experts.shared = "shared_mlp.";
  experts.shared_fused = true;
  experts.shared_gate_up = "input_linear";
  experts.shared_down = "output_linear";
  return pre_norm_layer(gqa_of(config, layer), experts_or_mlp(config, layer, experts));
}

Status read_granite_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_granite(fields, config));
  config->experts.score = ExpertScore::kSoftmaxOfChosen;
  return read_mixture(fields, &config->experts, &config->layers);
}

// Norms behind both parts, too.
LayerSpec hyperclovax_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = pre_norm_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
  spec.mixer_post_norm = "post_norm1";
  spec.feed_forward_post_norm = "post_norm2";
  return spec;
}

// Logits are multiplied by what divides Granite's, and scores are scaled as usual unless said.
Status read_hyperclovax(const ConfigFields& fields, ModelConfig* config) {
  bool normed = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_post_norm", &normed));
  if (!normed) {
    return unsupported(fields.where() +
                       ": use_post_norm false is not supported; use a model like HyperCLOVA X "
                       "SEED Think, whose parts are normed behind, too");
  }
  const float scale = config->attention_scale;
  FT_RETURN_IF_ERROR(read_granite(fields, config));
  config->logits_scale = 1 / config->logits_scale;
  if (fields.find("attention_multiplier") == nullptr) config->attention_scale = scale;
  return {};
}

LayerSpec granite_swa_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.sinks = "sinks";
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// Names as transformers has them, where a matrix of each kind holds all experts.
LayerSpec granite_moe_swa_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = granite_moe_layer(config, layer);
  std::get<GqaSpec>(spec.mixer).sinks = "sinks";
  if (auto* experts = std::get_if<ExpertsSpec>(&spec.feed_forward)) {
    experts->router = "block_sparse_moe.router";
    experts->experts = "block_sparse_moe.experts.";
    experts->gate_up = "gate_up_proj";
    experts->down = "down_proj";
  }
  return spec;
}

// How angles are scaled, whatever their base; all of a head turns.
Status find_granite_scaling(const ConfigFields& fields, Json* out) {
  *out = {{"rope_type", "default"}};
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* value = fields.find(name);
    if (value == nullptr || (value->is_object() && value->empty())) continue;
    if (!value->is_object() || value->contains("full_attention") ||
        value->contains("sliding_attention")) {
      return fields.wrong(name, "one object for all layers, or null");
    }
    *out = *value;
    out->erase("partial_rotary_factor");
    return {};
  }
  return {};
}

// A base of rotary positions for each layer, 0 for none: the layers of a type that turn must have
// one in common. The scaling is that of all, applied to each base.
Status translate_thetas(const ConfigFields& fields, const Json& types, Json* json) {
  const Json& thetas = *fields.find("layer_rope_theta");
  if (!thetas.is_array() || thetas.size() != types.size()) {
    return fields.wrong("layer_rope_theta", "a list with one number for each layer");
  }
  Json scaling, turning = Json::array(), ropes = Json::object();
  FT_RETURN_IF_ERROR(find_granite_scaling(fields, &scaling));
  for (size_t i = 0; i < thetas.size(); ++i) {
    const Json& theta = thetas[i];
    if (!theta.is_number() || theta < 0) {
      return fields.wrong("layer_rope_theta", "a list of numbers from 0 on");
    }
    turning.push_back(theta == 0 ? 0 : 1);
    if (theta == 0) continue;
    Json& rope = ropes[types[i].get_ref<const std::string&>()];
    if (rope.is_null()) {
      rope = scaling;
      rope["rope_theta"] = theta;
    }
    if (rope["rope_theta"] == theta) continue;
    return unsupported(fields.where() +
                       ": 'layer_rope_theta' differs among layers of one type, which is not "
                       "computed here; use a model whose layers with a window share one");
  }
  for (const char* type : {"full_attention", "sliding_attention"}) {
    if (!ropes.contains(type)) ropes[type] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  }
  (*json)["no_rope_layers"] = std::move(turning);
  (*json)["rope_parameters"] = std::move(ropes);
  json->erase("rope_scaling");
  return {};
}

// Every fourth layer from the first on has no window.
Status translate_granite_swa(const ConfigFields& fields, Json* json) {
  const auto type_of = [](int32_t i, int32_t) {
    return i % 4 == 0 ? "full_attention" : "sliding_attention";
  };
  FT_RETURN_IF_ERROR(write_layer_types(fields, type_of, json));
  if (fields.find("layer_rope_theta") == nullptr) return {};
  const Json own = (*json)["layer_types"];
  for (const Json& type : own) {
    if (!type.is_string()) return fields.wrong("layer_types", "a list of names");
  }
  return translate_thetas(fields, own, json);
}

// The expert that all tokens share is the whole feed-forward part where there are no others.
LayerSpec granite_hybrid_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = granite_moe_layer(config, layer);
  auto* shared = std::get_if<GatedMlpSpec>(&spec.feed_forward);
  if (shared != nullptr && !config.usual_mlp) {
    shared->fused = !config.plain_matrices;
    shared->base = "shared_mlp.";
    shared->gate_up = "input_linear";
    shared->down = "output_linear";
  }
  if (layer.recurrent) spec.mixer = state_space_of(config);
  return spec;
}

// Which layers have attention; in files that do not say it none has.
Status translate_hybrid_types(const ConfigFields& fields, int32_t num_layers, Json* json) {
  const char* name = fields.find("layer_types") != nullptr ? "layer_types" : "layers_block_type";
  const Json* types = fields.find(name);
  if (types == nullptr) {
    (*json)["layer_types"] = std::vector<std::string>(static_cast<size_t>(num_layers), "mamba");
    return {};
  }
  if (!types->is_array()) return fields.wrong(name, "a list with one entry for each layer");
  Json own = Json::array();
  for (const Json& type : *types) {
    const bool attends = type == "attention" || type == "full_attention";
    if (!attends && type != "mamba" && type != "linear_attention") {
      return fields.wrong(name, "a list of \"attention\" or \"mamba\"");
    }
    own.push_back(attends ? "full_attention" : "mamba");
  }
  (*json)["layer_types"] = std::move(own);
  return {};
}

Status translate_granite_hybrid(const ConfigFields& fields, Json* json) {
  int32_t num_layers = 0, num_experts = 0, shared = 1024;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  FT_RETURN_IF_ERROR(translate_hybrid_types(fields, num_layers, json));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_local_experts", &num_experts));
  FT_RETURN_IF_ERROR(fields.read_count("shared_intermediate_size", &shared));
  if (num_experts == 0) (*json)["intermediate_size"] = shared;
  const Json* positions = fields.find("position_embedding_type");
  if (positions == nullptr || *positions != "rope") {
    (*json)["no_rope_layers"] = std::vector<int>(static_cast<size_t>(num_layers), 0);
  }
  return {};
}

// Of what is read; files do not have it.
constexpr const char* kUsualMlp = "usual_mlp";

// MLX's tools give the shared expert of models without others Llama's names.
void take_mlx_granite(Json* json) { (*json)[kUsualMlp] = true; }

Status read_granite_hybrid(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_granite_moe(fields, config));
  FT_RETURN_IF_ERROR(fields.read_flag(kUsualMlp, &config->usual_mlp));
  const auto& layers = config->layers;
  const auto recurs = [](const LayerConfig& layer) { return layer.recurrent; };
  if (std::none_of(layers.begin(), layers.end(), recurs)) return {};
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_expand", &expand));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  return read_state_space(fields, {}, int64_t{expand} * config->hidden_size, &config->recurrent);
}

constexpr const char* kGraniteMoeDefaults =
    R"({"max_position_embeddings": 2048, "num_local_experts": 8, "num_experts_per_tok": 2})";

}  // namespace

// IBM 2024: Llama's blocks with multipliers of embeddings, scores, what blocks add, and logits.
constinit const Architecture kGraniteArchitecture = {
    .name = "GraniteForCausalLM",
    .description = "Granite 3, dense",
    .defaults = R"({"max_position_embeddings": 2048})",
    .read = read_granite,
};

// IBM 2024: the same with mixtures.
constinit const Architecture kGraniteMoeArchitecture = {
    .name = "GraniteMoeForCausalLM",
    .description = "Granite 3, mixtures",
    .defaults = kGraniteMoeDefaults,
    .decoder = {.layer = granite_moe_layer},
    .read = read_granite_moe,
};

// IBM 2025: and with an expert that all tokens share.
constinit const Architecture kGraniteMoeSharedArchitecture = {
    .name = "GraniteMoeSharedForCausalLM",
    .description = "Granite, mixtures with a shared expert",
    .defaults = kGraniteMoeDefaults,
    .decoder = {.layer = granite_moe_layer},
    .read = read_granite_moe,
};

// IBM 2025: the same, with Mamba 2 instead of attention in most layers of most models.
constinit const Architecture kGraniteMoeHybridArchitecture = {
    .name = "GraniteMoeHybridForCausalLM",
    .description = "Granite 4",
    .defaults = R"({"max_position_embeddings": 2048, "intermediate_size": 11008,
                    "num_local_experts": 8, "num_experts_per_tok": 2,
                    "shared_intermediate_size": 1024, "mamba_n_heads": 128,
                    "mamba_d_state": 256, "mamba_d_conv": 4})",
    .decoder = {.layer = granite_hybrid_layer},
    .recurrent_type = "mamba",
    .translate = translate_granite_hybrid,
    .take_mlx = take_mlx_granite,
    .mlx_sign = ".mlp.gate_proj.",
    .read = read_granite_hybrid,
};

// NAVER Cloud 2025: Granite's multipliers, norms before and behind both parts.
constinit const Architecture kHyperClovaXArchitecture = {
    .name = "HyperCLOVAXForCausalLM",
    .description = "HyperCLOVA X SEED Think 14B",
    .defaults = R"({"max_position_embeddings": 2048})",
    .decoder = {.layer = hyperclovax_layer},
    .read = read_hyperclovax,
};

// IBM 2026: Granite with windows and a sink in every head.
constinit const Architecture kGraniteSwaArchitecture = {
    .name = "GraniteSWAForCausalLM",
    .description = "Granite Swash, dense",
    .defaults = R"({"max_position_embeddings": 8192, "num_key_value_heads": 4,
                    "rms_norm_eps": 1e-5, "sliding_window": 128})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = granite_swa_layer},
    .translate = translate_granite_swa,
    .read = read_granite,
};

// IBM 2026: the same with mixtures.
constinit const Architecture kGraniteMoeSwaArchitecture = {
    .name = "GraniteMoeSWAForCausalLM",
    .description = "Granite Swash, mixtures",
    .defaults = R"({"max_position_embeddings": 2048, "num_local_experts": 8,
                    "num_experts_per_tok": 2, "sliding_window": 128})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = granite_moe_swa_layer},
    .translate = translate_granite_swa,
    .read = read_granite_moe,
};

}  // namespace foretoken
