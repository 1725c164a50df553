#include "gguf/later_architectures.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr GgufName kGlimmerTensors[] = {{"attn_gate", "self_attn.gate_proj"},
                                        {"post_attention_norm", "post_attention_layernorm"},
                                        {"ffn_norm", "pre_feedforward_layernorm"},
                                        {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr GgufKey kGlimmerKeys[] = {{"logit_scale", "output_multiplier"}};
// Norms of queries and keys have no weights but a factor, which converters write as such.
constexpr std::string_view kGlimmerFactors[] = {"attn_q_norm.weight", "attn_k_norm.weight"};

// The number that all elements of such a tensor are, which must be one.
Result<double> factor_of(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  const bool is_there = found != file.tensors().end() && found->second.type->name == "F32" &&
                        found->second.num_bytes > 0;
  std::vector<float> values(is_there ? static_cast<size_t>(found->second.num_bytes) / sizeof(float)
                                     : 0);
  if (is_there) FT_RETURN_IF_ERROR(file.read(found->second, values.data()));
  const bool same = std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  if (is_there && same && std::isfinite(values[0]) && values[0] > 0) return double{values[0]};
  return file.error("the tensor '" + name +
                    "' must be of F32 and have one number in all places; convert the model again");
}

// Layers with a window turn and others do not.
Status read_glimmer_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto windowed, file.number("muse-glimmer.rope.freq_base_swa"));
  FT_ASSIGN_OR_RETURN(const auto full, file.number("muse-glimmer.rope.freq_base"));
  const double theta = windowed ? *windowed : full.value_or(10000.0);
  if (config.contains("layer_types")) {
    Json thetas = Json::array();
    for (const Json& type : config["layer_types"]) {
      thetas.push_back(type == "sliding_attention" ? Json(theta) : Json(0));
    }
    config["layer_rope_theta"] = std::move(thetas);
  }
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string before = "blk." + std::to_string(i) + ".";
    FT_ASSIGN_OR_RETURN(const double queries, factor_of(file, before + "attn_q_norm.weight"));
    FT_ASSIGN_OR_RETURN(const double keys, factor_of(file, before + "attn_k_norm.weight"));
    if (i == 0) config["qk_scale_factor"] = queries * keys;
    if (config["qk_scale_factor"] == queries * keys) continue;
    return file.error("layers differ in '" + before +
                      "attn_q_norm.weight', which is one factor of all; convert the model again");
  }
  return {};
}

constexpr GgufArchitecture kLaterArchitectures[] = {
    {.name = "muse-glimmer",
     .hf_class = "MuseGlimmerForCausalLM",
     .model_type = "muse_glimmer_text",
     .interleaves_heads = true,
     .whole_norms = true,
     .tensors = kGlimmerTensors,
     .keys = kGlimmerKeys,
     .in_config = kGlimmerFactors,
     .read = read_glimmer_file},
    {.name = "orion", .hf_class = "OrionForCausalLM", .model_type = "orion"},
    {.name = "maincoder", .hf_class = "MaincoderForCausalLM", .model_type = "maincoder"},
    {.name = "pangu-embedded",
     .hf_class = "PanguEmbeddedForCausalLM",
     .model_type = "PanguEmbedded"},
    {.name = "xverse",
     .hf_class = "LlamaForCausalLM",
     .model_type = "llama",
     .interleaves_heads = true},
};

// Why files are not read.
constexpr const char* kEncoder =
    "it makes vectors of texts and writes none, for which foretoken has no command; use a model "
    "that writes";
constexpr const char* kTwoParts =
    "it needs an encoder beside the decoder, which is not built; use a model without one";
constexpr const char* kDiffusion =
    "it fills in masks in any order instead of writing from left to right, which is not built; use "
    "a model that writes token by token";
constexpr const char* kRwkv =
    "it needs RWKV's time mixing, which is not built; use a model of another family";
constexpr const char* kSeeing =
    "it is made for reading images, which is not built; use a model of texts";
constexpr const char* kSound =
    "it makes sounds or reads them, which is not built; use a model of texts";
constexpr const char* kDrafter =
    "it is a drafter of a kind that is not read from GGUF files, and no model; give the drafter's "
    "Hugging Face folder to --spec-model";
constexpr const char* kFolderLoads =
    "its names and keys in GGUF files are not read; use the model's Hugging Face folder, which "
    "loads";
constexpr const char* kNoFamily =
    "its family is not built in any form; use a model of one that foretoken inspect --families "
    "lists";

struct RefusedArchitecture {
  std::string_view name;
  const char* why;
};

constexpr RefusedArchitecture kRefusedFiles[] = {
    {"arctic", kNoFamily},
    {"arwkv7", kRwkv},
    {"axk2", kFolderLoads},
    {"bailingmoe", kFolderLoads},
    {"bert", kEncoder},
    {"chameleon", kSeeing},
    {"codeshell", kNoFamily},
    {"cogvlm", kSeeing},
    {"deepseek", kNoFamily},
    {"deepseek2-ocr", kSeeing},
    {"deepseek41", kNoFamily},
    {"dflash", kDrafter},
    {"dream", kDiffusion},
    {"eagle3", kDrafter},
    {"eurobert", kEncoder},
    {"gemma-embedding", kEncoder},
    {"gemma4-assistant", kDrafter},
    {"glm5next", kNoFamily},
    {"gptj", kFolderLoads},
    {"grok", kNoFamily},
    {"grovemoe", kNoFamily},
    {"hunyuan_vl", kSeeing},
    {"jais", kNoFamily},
    {"jina-bert-v2", kEncoder},
    {"jina-bert-v3", kEncoder},
    {"llada", kDiffusion},
    {"llada-moe", kDiffusion},
    {"llama-embed", kEncoder},
    {"modern-bert", kEncoder},
    {"neo-bert", kEncoder},
    {"nomic-bert", kEncoder},
    {"nomic-bert-moe", kEncoder},
    {"openelm", kNoFamily},
    {"paddleocr", kSeeing},
    {"plamo", kNoFamily},
    {"plamo2", kNoFamily},
    {"plamo3", kNoFamily},
    {"plm", kNoFamily},
    {"qwen", kNoFamily},
    {"qwen4exp", kNoFamily},
    {"refact", kNoFamily},
    {"rnd1", kDiffusion},
    {"rwkv6", kRwkv},
    {"rwkv6qwen2", kRwkv},
    {"rwkv7", kRwkv},
    {"smallthinker", kNoFamily},
    {"t5", kTwoParts},
    {"t5encoder", kEncoder},
    {"talkie", kNoFamily},
    {"wavtokenizer-dec", kSound},
};

}  // namespace

std::span<const GgufArchitecture> later_gguf_architectures() { return kLaterArchitectures; }

std::string why_not_read(std::string_view architecture) {
  for (const RefusedArchitecture& refused : kRefusedFiles) {
    if (refused.name == architecture) return refused.why;
  }
  return "";
}

}  // namespace foretoken
