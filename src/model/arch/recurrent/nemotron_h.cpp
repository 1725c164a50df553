#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/arch/recurrent/nemotron_blocks.h"
#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr StateSpaceNames kNemotronNames = {.heads = "mamba_num_heads",
                                            .head_dim = "mamba_head_dim",
                                            .groups = "n_groups",
                                            .state_size = "ssm_state_size",
                                            .conv_width = "conv_kernel",
                                            .conv_bias = "use_conv_bias",
                                            .bias = "use_bias"};

// The parts that a layer can be, and the letters of hybrid_override_pattern.
enum class NemotronPart : uint8_t { kStates, kAttention, kMlp, kExperts };
struct NemotronPartName {
  const char* name;
  NemotronPart part;
};
constexpr NemotronPartName kNemotronParts[] = {
    {"M", NemotronPart::kStates},
    {"mamba", NemotronPart::kStates},
    {"*", NemotronPart::kAttention},
    {"attention", NemotronPart::kAttention},
    {"-", NemotronPart::kMlp},
    {"mlp", NemotronPart::kMlp},
    {"E", NemotronPart::kExperts},
    {"moe", NemotronPart::kExperts},
    {"linear_attention", NemotronPart::kStates},
    {"full_attention", NemotronPart::kAttention},
};

// Each expert is down(max(up x, 0)^2): with its ups as gates of ReLU, too.
ExpertsSpec nemotron_experts(const ModelConfig& config, const LayerConfig& layer = {}) {
  ExpertsSpec experts = experts_of(config);
  if (layer.expert_inner > 0) experts.inner = layer.expert_inner;
  if (layer.top_experts > 0) experts.top_k = layer.top_experts;
  experts.activation = Activation::kRelu;
  experts.base = "mixer.";
  experts.gate = "up_proj";
  experts.shared_gate_proj = "up_proj";
  return experts;
}

LayerSpec nemotron_h_layer(const ModelConfig& config, const LayerConfig& layer) {
  if (layer.recurrent) {
    LinearSpec mixer = state_space_of(config);
    mixer.base = "mixer.";
    return {.mixer_norm = "norm", .mixer = mixer, .feed_forward = Absent{}};
  }
  if (layer.attention) {
    GqaSpec attention = gqa_of(config, layer);
    attention.base = "mixer.";
    return {.mixer_norm = "norm", .mixer = attention, .feed_forward = Absent{}};
  }
  if (layer.experts) {
    return {.mixer = Absent{},
            .feed_forward_norm = "norm",
            .feed_forward = nemotron_experts(config, layer)};
  }
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.base = "mixer.";
  return {.mixer = Absent{}, .feed_forward_norm = "norm", .feed_forward = mlp};
}

// The draft module: two layers in the file, which are one here.
LayerSpec nemotron_module(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.base = "0.mixer.";
  ExpertsSpec experts = nemotron_experts(config);
  experts.base = "1.mixer.";
  return {.mixer_norm = "0.norm",
          .mixer = attention,
          .feed_forward_norm = "1.norm",
          .feed_forward = experts};
}

// What each layer is, by whichever field the file has: one with names, or one with letters.
Status read_parts(const ConfigFields& fields, std::vector<NemotronPart>* out,
                  const char* field = "layers_block_type",
                  const char* letters = "hybrid_override_pattern") {
  std::vector<std::string> names;
  const Json* list = fields.find(field);
  if (list == nullptr) {
    const char* first = field;
    field = letters;
    list = fields.find(field);
    if (list == nullptr) return fields.missing(first);
    if (!list->is_string()) return fields.wrong(field, "a text of the letters M, *, - and E");
    for (const char letter : list->get_ref<const std::string&>()) names.emplace_back(1, letter);
  } else {
    if (!list->is_array()) return fields.wrong(field, "a list with one entry for each layer");
    for (const Json& name : *list) names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  for (const std::string& name : names) {
    const auto* part = std::ranges::find_if(
        kNemotronParts, [&](const NemotronPartName& known) { return name == known.name; });
    if (part == std::end(kNemotronParts)) {
      return fields.wrong(field,
                          "of \"mamba\", \"attention\", \"mlp\" and \"moe\", or of their "
                          "letters M, *, - and E");
    }
    out->push_back(part->part);
  }
  if (out->empty() || out->size() > 1 << 16) return fields.wrong(field, "1 to 2^16 layers");
  return {};
}

// Lists of layers say how many there are, whatever num_hidden_layers does.
Status translate_nemotron_h(const ConfigFields& given, Json* json) {
  FT_RETURN_IF_ERROR(write_block_configs(given, json));
  const Json named = *json;
  const ConfigFields fields = given.of(named);
  constexpr RenamedField kNames[] = {
      {"mlp_hidden_act", "hidden_act"},
      {"attention_head_dim", "head_dim"},
      {"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"}};
  take_renamed(fields, kNames, json);
  std::vector<NemotronPart> parts;
  FT_RETURN_IF_ERROR(read_parts(fields, &parts));
  Json types = Json::array();
  for (const NemotronPart part : parts) {
    types.push_back(part == NemotronPart::kStates ? "mamba" : "full_attention");
  }
  (*json)["num_hidden_layers"] = parts.size();
  (*json)["layer_types"] = std::move(types);
  (*json)["no_rope_layers"] = std::vector<int>(parts.size(), 0);
  return {};
}

Status read_nemotron_mixture(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_count("moe_latent_size", &config->experts.latent));
  if (config->activation != Activation::kReluSquared || config->mlp_bias) {
    return unsupported(fields.where() +
                       ": experts with biases or another activation than relu2 are not "
                       "supported; use a model such as Nemotron 3 Nano");
  }
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = experts.normalised = true;
  return read_expert_config(fields, &experts);
}

// Whether the draft module is attention and a mixture behind it.
Status read_nemotron_module(const ConfigFields& fields, ModelConfig* config) {
  if (config->num_mtp_modules == 0) return {};
  config->num_mtp_modules = 0;
  constexpr const char* kTypes = "mtp_layers_block_type";
  constexpr const char* kLetters = "mtp_hybrid_override_pattern";
  if (fields.find(kTypes) == nullptr && fields.find(kLetters) == nullptr) return {};
  std::vector<NemotronPart> parts;
  FT_RETURN_IF_ERROR(read_parts(fields, &parts, kTypes, kLetters));
  const bool known = parts == std::vector{NemotronPart::kAttention, NemotronPart::kExperts};
  config->num_mtp_modules = known && config->experts.count > 0 ? 1 : 0;
  return {};
}

Status read_nemotron_h(const ConfigFields& fields, ModelConfig* config) {
  std::vector<NemotronPart> parts;
  FT_RETURN_IF_ERROR(read_parts(fields, &parts));
  for (size_t i = 0; i < parts.size(); ++i) {
    LayerConfig& layer = config->layers[i];
    const NemotronPart part = parts[i];
    layer.attention = part == NemotronPart::kStates || part == NemotronPart::kAttention;
    layer.feed_forward = !layer.attention;
    layer.experts = part == NemotronPart::kExperts;
  }
  FT_RETURN_IF_ERROR(read_block_sizes(fields, &config->layers));
  if (std::ranges::find(parts, NemotronPart::kExperts) != parts.end()) {
    FT_RETURN_IF_ERROR(read_nemotron_mixture(fields, config));
  }
  FT_RETURN_IF_ERROR(read_nemotron_module(fields, config));
  if (std::ranges::find(parts, NemotronPart::kStates) == parts.end()) return {};
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("expand", &expand));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "mamba_hidden_act"));
  return read_state_space(fields, kNemotronNames, int64_t{expand} * config->hidden_size,
                          &config->recurrent);
}

// The draft module, which the model itself does not read.
constexpr const char* kNemotronModules[] = {"mtp.", "backbone.mtp.", "model.mtp."};

}  // namespace

// NVIDIA 2025: layers of one part each: Mamba 2, attention without positions, an MLP of squared
// ReLU or a mixture of those.
constinit const Architecture kNemotronHArchitecture = {
    .name = "NemotronHForCausalLM",
    .description =
        "Nemotron H, Nemotron Nano 2, Nemotron 3 Nano, Super, Ultra and Puzzle, with their MTP "
        "module as a drafter",
    .defaults = R"({"max_position_embeddings": 4096, "num_key_value_heads": 8, "head_dim": 128,
                    "layer_norm_epsilon": 1e-5, "hidden_act": "relu2", "mamba_num_heads": 128,
                    "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
                    "n_routed_experts": 8, "num_experts_per_tok": 2,
                    "moe_intermediate_size": 7688})",
    .decoder = {.places = {{{"backbone.", "lm_head.weight"}, {"model.", "lm_head.weight"}}},
                .embedding = "embeddings",
                .last_norm = "norm_f",
                .ignored = kNemotronModules,
                .layer = nemotron_h_layer},
    .mtp = {.layers = "mtp.layers.",
            .counts_on = false,
            .unnumbered = true,
            .projection = "0.eh_proj",
            .embed_norm = "0.enorm",
            .state_norm = "0.hnorm",
            .output_norm = "1.final_layernorm",
            .chains_normed = true,
            .layer = nemotron_module},
    .recurrent_type = "mamba",
    .translate = translate_nemotron_h,
    .read = read_nemotron_h,
};

}  // namespace foretoken
