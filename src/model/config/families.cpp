#include "model/config/families.h"

#include <cctype>

#include "base/text/nearest_name.h"
#include "model/config/architecture.h"
#include "model/config/missing_parts.h"
#include "model/files/forms/quantization.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr RefusedFamily kRefusedFamilies[] = {
    {"ArcticForCausalLM", "Snowflake Arctic", kInputExperts},
    {"BeamForCausalLM", "Beam", kDepthResiduals | kGrowingQueries},
    {"DeepseekV41ForCausalLM", "DeepSeek V4.1", kSparseAttention},
    {"DiffusionGemmaForBlockDiffusion", "DiffusionGemma", kMaskFilling},
    {"DoryForCausalLM", "Dory", kLoopedLayers},
    {"Dots3NoteForCausalLM", "dots3 note", kSparseAttention},
    {"Dots3NoteForConditionalGeneration", "dots3 note with vision", kSparseAttention},
    {"DreamModel", "Dream", kMaskFilling},
    {"FuyuForCausalLM", "Fuyu", kBiasedHeadNorms},
    {"GigaChat35ForCausalLM", "GigaChat 3.5", kLinearAttention},
    {"HrmTextForCausalLM", "HRM Text", kLoopedLayers},
    {"Inkling2ForCausalLM", "Inkling 2", kConvolutionLayers},
    {"Inkling2ForConditionalGeneration", "Inkling 2 with vision", kConvolutionLayers},
    {"Inkling2LoopForConditionalGeneration", "Inkling 2 Loop with vision",
     kConvolutionLayers | kLoopedLayers},
    {"Inkling2LoopForCausalLM", "Inkling 2 Loop", kConvolutionLayers | kLoopedLayers},
    {"InklingForCausalLM", "Inkling", kConvolutionLayers},
    {"InklingForConditionalGeneration", "Inkling with vision", kConvolutionLayers},
    {"IQuestLoopCoderForCausalLM", "IQuest Loop Coder", kLoopedLayers},
    {"JetMoeForCausalLM", "JetMoE", kAttentionExperts},
    {"LLaDA2MoeModelLM", "LLaDA 2, mixtures", kMaskFilling},
    {"LLaDAModelLM", "LLaDA", kMaskFilling},
    {"LLaDAMoEModelLM", "LLaDA, mixtures", kMaskFilling},
    {"MapleForCausalLM", "Maple", kGateLimits},
    {"MistralLarge4ForConditionalGeneration", "Mistral Large 4", kSparseAttention},
    {"MuseSparkForConditionalGeneration", "Muse Spark", kNormKinds | kResidualGates},
    {"PaliGemmaForConditionalGeneration", "PaliGemma 1 and 2", kSeeingPrompts},
    {"PersimmonForCausalLM", "Persimmon", kBiasedHeadNorms},
    {"Phi3SmallForCausalLM", "Phi-3 Small", kSparseAttention},
    {"Plamo2ForCausalLM", "PLaMo 2", kStateSpaceLayers},
    {"Qwen2ForProcessRewardModel", "Qwen 2.5 Math PRM", kStepRewards},
    {"Qwen4ExpForCausalLM", "Qwen 4, experimental", kLinearAttention},
    {"Qwen4ExpForConditionalGeneration", "Qwen 4, experimental, with vision", kLinearAttention},
    {"RecurrentGemmaForCausalLM", "RecurrentGemma", kRecurrences},
    {"RND1", "RND1", kMaskFilling},
    {"Rwkv6ForCausalLM", "RWKV 6", kLinearAttention},
    {"RWKV6Qwen2ForCausalLM", "QRWKV 6", kLinearAttention},
    {"RwkvForCausalLM", "RWKV 4", kLinearAttention},
    {"SDARForCausalLM", "SDAR", kMaskFilling},
    {"SolarForCausalLM", "Solar Pro 22B", kDepthResiduals},
    {"Step3TextForCausalLM", "Step 3, its text part", kFactorizedQueries},
    {"Step3VLForConditionalGeneration", "Step 3 with vision", kFactorizedQueries},
    {"T5Gemma2ForConditionalGeneration", "T5Gemma 2", kEncoder},
    {"T5GemmaForConditionalGeneration", "T5Gemma", kEncoder},
    {"UnlimitedOCRForCausalLM", "Unlimited OCR", kSparseAttention},
    {"UnlimitedOcrForConditionalGeneration", "Unlimited OCR, in transformers' form",
     kSparseAttention},
    {"xLSTMForCausalLM", "xLSTM 7B", kRecurrences},
    {"ZayaForCausalLM", "Zaya", kConvolutionLayers},
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

// Heads have architectures of their own, one for each family of targets.
bool drafts_for_others(const std::string& architecture) {
  for (const char* part : {"Eagle", "Medusa", "MLPSpeculator", "DFlash", "DSpark", "Domino",
                           "Gemma4Assistant", "Gemma4UnifiedAssistant"}) {
    if (architecture.find(part) != std::string::npos) return true;
  }
  return false;
}

// What the file calls its model: the class, or the model_type where no class stands in its place.
std::string what_is_refused(const std::string& name, const Json& config) {
  const auto type = config.find("model_type");
  const bool is_class = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  if (!is_class && type != config.end() && type->is_string()) {
    return "model_type '" + type->get<std::string>().substr(0, 80) + "'";
  }
  return "architecture '" + name + "'";
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
  if (drafts_for_others(name)) {
    return unsupported(where + ": '" + name +
                       "' is no model but a head that drafts for one; load the model that it was " +
                       "trained for, and give the head to --spec-model");
  }
  const RefusedFamily* family = find_refused_family(name);
  const uint32_t parts =
      parts_asked_for(config) | (family != nullptr ? family->lacks : kNoMissingPart);
  std::string text = where + ": " + what_is_refused(name, config);
  if (family != nullptr) text += " (" + std::string(family->description) + ")";
  text += " is not supported";
  if (parts != kNoMissingPart) {
    text += ": it needs " + missing_parts_text(parts) + unread_quantization(config);
  }
  const bool is_unknown = family == nullptr && parts == kNoMissingPart;
  return unsupported(text + (is_unknown ? known_architectures_hint(name) : families_hint("", {})));
}

std::string families_hint(const std::string& name, const std::vector<std::string>& known) {
  return nearest_name_hint(name, known, ";", 2) + " foretoken inspect --families lists what loads";
}

}  // namespace foretoken
