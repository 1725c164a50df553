#include "model/config/families.h"

#include "model/config/missing_parts.h"
#include "model/files/quantization.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr RefusedFamily kRefusedFamilies[] = {
    {"BambaForCausalLM", "Bamba", kStateSpaceLayers},
    {"BitNetForCausalLM", "BitNet b1.58", kBitLinear},
    {"BloomForCausalLM", "BLOOM", kAlibiPositions},
    {"DbrxForCausalLM", "DBRX", kMixtureOfExperts},
    {"DeepseekV2ForCausalLM", "DeepSeek V2", kLatentAttention},
    {"DeepseekV3ForCausalLM", "DeepSeek V3, R1 and Kimi K2", kLatentAttention | kMixtureOfExperts},
    {"DeepseekV32ForCausalLM", "DeepSeek V3.2",
     kLatentAttention | kSparseAttention | kMixtureOfExperts},
    {"DeepseekV4ForCausalLM", "DeepSeek V4",
     kLatentAttention | kSparseAttention | kMixtureOfExperts},
    {"DiffLlamaForCausalLM", "DiffLlama", kDifferentialAttention},
    {"DogeForCausalLM", "Doge", kDynamicMasks},
    {"Dots1ForCausalLM", "dots.llm1", kMixtureOfExperts},
    {"Ernie4_5_MoeForCausalLM", "ERNIE 4.5, mixtures", kMixtureOfExperts},
    {"FalconH1ForCausalLM", "Falcon H1", kStateSpaceLayers},
    {"FlexOlmoForCausalLM", "FlexOlmo", kMixtureOfExperts},
    {"Gemma3nForCausalLM", "Gemma 3n, text", kSharedKv | kPerLayerEmbeddings | kResidualStreams},
    {"Gemma3nForConditionalGeneration", "Gemma 3n",
     kSharedKv | kPerLayerEmbeddings | kResidualStreams},
    {"Glm4MoeForCausalLM", "GLM 4.5 and 4.6", kMixtureOfExperts},
    {"Glm4MoeLiteForCausalLM", "GLM 4.7 Flash", kLatentAttention | kMixtureOfExperts},
    {"GlmMoeDsaForCausalLM", "GLM 5", kLatentAttention | kSparseAttention | kMixtureOfExperts},
    {"GptOssForCausalLM", "gpt-oss", kAttentionSinks | kMixtureOfExperts},
    {"GraniteMoeForCausalLM", "Granite 3, mixtures", kMixtureOfExperts},
    {"GraniteMoeHybridForCausalLM", "Granite 4", kStateSpaceLayers},
    {"HunYuanMoEV1ForCausalLM", "Hunyuan, mixtures", kMixtureOfExperts},
    {"JambaForCausalLM", "Jamba", kStateSpaceLayers},
    {"KimiK25ForConditionalGeneration", "Kimi K2.5 and later",
     kLatentAttention | kMixtureOfExperts},
    {"KimiK3ForConditionalGeneration", "Kimi K3",
     kLatentAttention | kLinearAttention | kMixtureOfExperts},
    {"Lfm2ForCausalLM", "LFM 2", kConvolutionLayers},
    {"Lfm2MoeForCausalLM", "LFM 2, mixtures", kConvolutionLayers | kMixtureOfExperts},
    {"LongcatFlashForCausalLM", "LongCat Flash", kLatentAttention | kMixtureOfExperts},
    {"Mamba2ForCausalLM", "Mamba 2", kStateSpaceLayers},
    {"MiMoV2FlashForCausalLM", "MiMo V2 Flash", kAttentionSinks | kMixtureOfExperts},
    {"MiniMaxForCausalLM", "MiniMax Text and M1", kLinearAttention | kMixtureOfExperts},
    {"MiniMaxM2ForCausalLM", "MiniMax M2", kMixtureOfExperts},
    {"MiniMaxM3ForCausalLM", "MiniMax M3", kSparseAttention | kMixtureOfExperts},
    {"Mistral4ForCausalLM", "Mistral Small 4", kLatentAttention | kMixtureOfExperts},
    {"MixtralForCausalLM", "Mixtral", kMixtureOfExperts},
    {"NemotronHForCausalLM", "Nemotron H and Nemotron 3", kStateSpaceLayers},
    {"OlmoeForCausalLM", "OLMoE", kMixtureOfExperts},
    {"PhimoeForCausalLM", "Phi-3.5 MoE", kMixtureOfExperts},
    {"Qwen2MoeForCausalLM", "Qwen 1.5 and 2, mixtures", kMixtureOfExperts},
    {"Qwen3MoeForCausalLM", "Qwen 3, mixtures", kMixtureOfExperts},
    {"Qwen3VLMoeForConditionalGeneration", "Qwen 3 VL, mixtures", kMixtureOfExperts},
    {"Qwen3NextForCausalLM", "Qwen 3 Next", kLinearAttention | kMixtureOfExperts},
    {"Qwen3_5ForCausalLM", "Qwen 3.5", kLinearAttention},
    {"Qwen3_5ForConditionalGeneration", "Qwen 3.5 with vision", kLinearAttention},
    {"Qwen3_5MoeForCausalLM", "Qwen 3.5, mixtures", kLinearAttention | kMixtureOfExperts},
    {"Qwen3_5MoeForConditionalGeneration", "Qwen 3.5 and 3.6 with vision, mixtures",
     kLinearAttention | kMixtureOfExperts},
    {"Step3p7FlashForCausalLM", "Step 3.7 Flash", kMixtureOfExperts},
    {"T5GemmaForConditionalGeneration", "T5Gemma", kEncoder},
    {"YoutuForCausalLM", "Youtu", kLatentAttention},
    {"Zamba2ForCausalLM", "Zamba 2", kStateSpaceLayers},
};

// How the weights are quantised, where that is not read; empty otherwise.
std::string unread_quantization(const Json& config) {
  if (read_quantization(config, "").ok()) return "";
  const Json& found = config.at("quantization_config");
  if (!found.is_object()) return "";
  for (const char* name : {"quant_algo", "quant_method"}) {
    const auto value = found.find(name);
    if (value != found.end() && value->is_string()) {
      return " and matrices of " + std::string(name) + " " + value->dump().substr(0, 40);
    }
  }
  return "";
}

}  // namespace

std::span<const RefusedFamily> refused_families() { return kRefusedFamilies; }

const RefusedFamily* find_refused_family(const std::string& architecture) {
  for (const RefusedFamily& family : kRefusedFamilies) {
    if (architecture == family.architecture) return &family;
  }
  return nullptr;
}

Status refuse_parts(uint32_t parts, const std::string& where) {
  return unsupported(where + ": the model needs " + missing_parts_text(parts) +
                     ", not supported; foretoken inspect --families lists what loads");
}

Status refuse_architecture(const std::string& name, const Json& config, const std::string& where) {
  const RefusedFamily* family = find_refused_family(name);
  const uint32_t parts =
      parts_asked_for(config) | (family != nullptr ? family->lacks : kNoMissingPart);
  std::string text = where + ": architecture '" + name + "'";
  if (family != nullptr) text += " (" + std::string(family->description) + ")";
  text += " is not supported";
  if (parts != kNoMissingPart) {
    text += ": it needs " + missing_parts_text(parts) + unread_quantization(config);
  }
  return unsupported(text + "; foretoken inspect --families lists what loads");
}

}  // namespace foretoken
