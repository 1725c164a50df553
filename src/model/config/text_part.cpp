#include "model/config/text_part.h"

#include "model/config/architecture.h"
#include "model/config/families.h"
#include "model/config/model_types.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kLlama = "LlamaForCausalLM";
constexpr const char* kQwen2 = "Qwen2ForCausalLM";
constexpr const char* kQwen3 = "Qwen3ForCausalLM";
constexpr const char* kDeepseek = "DeepseekForCausalLM";

constexpr WrappedFamily kWrappedFamilies[] = {
    {"InternVLChatModel", "InternVL 1.5 to 3.5, as published; their text part"},
    {"InternS1ForConditionalGeneration", "Intern S1; its text part"},
    {"InternS2PreviewForConditionalGeneration", "Intern S2 Preview; its text part",
     "Qwen3_5MoeForCausalLM"},
    {"Qwen2_5OmniForConditionalGeneration", "Qwen 2.5 Omni; its thinker's text part"},
    {"Qwen2_5OmniModel", "Qwen 2.5 Omni, older exports; its thinker's text part"},
    {"Qwen2_5OmniThinkerForConditionalGeneration", "Qwen 2.5 Omni, the thinker; its text part"},
    {"Qwen3OmniMoeForConditionalGeneration", "Qwen 3 Omni; its thinker's text part"},
    {"Qwen3OmniMoeThinkerForConditionalGeneration", "Qwen 3 Omni, the thinker; its text part"},
    {"Qwen2AudioForConditionalGeneration", "Qwen 2 Audio; its text part"},
    {"Qwen3ASRForConditionalGeneration", "Qwen 3 ASR; its text part"},
    {"MiniCPMV", "MiniCPM-V 2.5 to 4.5; their text part"},
    {"MiniCPMO", "MiniCPM-o 2.6 and 4.5; their text part"},
    {"MiniCPMV4_6ForConditionalGeneration", "MiniCPM-V 4.6; its text part"},
    {"MiniCPMV4_7ForConditionalGeneration", "MiniCPM-V 4.7; its text part"},
    {"MiniCPMOcrForConditionalGeneration", "MiniCPM OCR; its text part"},
    {"Phi3VForCausalLM", "Phi-3 and 3.5 Vision; their text part", "Phi3ForCausalLM"},
    {"Phi4MMForCausalLM", "Phi-4 Multimodal, as published; its text part", "Phi3ForCausalLM"},
    {"NemotronH_Nano_VL_V2", "Nemotron Nano VL 2; its text part"},
    {"NemotronH_Omni_Reasoning_V3", "Nemotron 3 Omni; its text part"},
    {"Llama_Nemotron_Nano_VL", "Llama Nemotron Nano VL; its text part"},
    {"NemotronH_Nano_Omni_Reasoning_V3", "Nemotron 3 Nano Omni; its text part"},
    {"Granite4VisionForConditionalGeneration", "Granite 4 Vision; its text part"},
    {"GraniteDoclingForConditionalGeneration",
     "Granite Docling, in transformers' form; its text part"},
    {"GraniteSpeechForConditionalGeneration", "Granite Speech; its text part"},
    {"GlmOcrForConditionalGeneration", "GLM-OCR; its text part"},
    {"GlmAsrForConditionalGeneration", "GLM-ASR; its text part"},
    {"DotsOCRForCausalLM", "dots.ocr; its text part", kQwen2},
    {"PaddleOCRVLForConditionalGeneration", "PaddleOCR-VL; its text part", kLlama},
    {"HunYuanVLForConditionalGeneration", "Hunyuan OCR; its text part",
     "HunYuanDenseV1ForCausalLM"},
    {"LightOnOcrForConditionalGeneration", "LightOnOCR; its text part"},
    {"LightOnOCRForConditionalGeneration", "LightOnOCR, newer exports; its text part"},
    {"GotOcr2ForConditionalGeneration", "GOT-OCR 2; its text part"},
    {"QianfanOCRForConditionalGeneration", "Qianfan OCR; its text part"},
    {"HyperCLOVAXVisionV2ForConditionalGeneration", "HyperCLOVA X SEED Vision 2; its text part"},
    {"HCXVisionV2ForCausalLM", "HyperCLOVA X SEED Vision 2, older exports; its text part"},
    {"HCXVisionForCausalLM", "HyperCLOVA X SEED Vision 3B; its text part"},
    {"Lfm3VlForConditionalGeneration", "LFM 3 VL; its text part"},
    {"LlavaNextVideoForConditionalGeneration", "LLaVA-NeXT Video; its text part"},
    {"VideoLlavaForConditionalGeneration", "Video-LLaVA; its text part"},
    {"VipLlavaForConditionalGeneration", "ViP-LLaVA; its text part"},
    {"VideoLlama3ForConditionalGeneration", "VideoLLaMA 3, in transformers' form; its text part"},
    {"FastVlmForConditionalGeneration", "FastVLM; its text part"},
    {"Idefics2ForConditionalGeneration", "Idefics 2; its text part"},
    {"Ovis2ForConditionalGeneration", "Ovis 2, in transformers' form; its text part"},
    {"Emu3ForConditionalGeneration", "Emu 3, in transformers' form; its text part"},
    {"PerceptionLMForConditionalGeneration", "Perception LM; its text part"},
    {"DeepseekVLForConditionalGeneration", "DeepSeek VL, in transformers' form; its text part"},
    {"JanusForConditionalGeneration", "Janus, in transformers' form; its text part"},
    {"AudioFlamingo3ForConditionalGeneration", "Audio Flamingo 3; its text part"},
    {"VibeVoiceAsrForConditionalGeneration", "VibeVoice ASR; its text part"},
    {"KeyeForConditionalGeneration", "Keye VL; its text part", kQwen3},
    {"KeyeVL1_5ForConditionalGeneration", "Keye VL 1.5; its text part", kQwen3},
    {"OpenCUAForConditionalGeneration", "OpenCUA; its text part"},
    {"BeeForConditionalGeneration", "Bee; its text part"},
    {"RForConditionalGeneration", "R-4B; its text part"},
    {"SkyworkR1VChatModel", "Skywork R1V; its text part"},
    {"NVLM_D", "NVLM; its text part"},
    {"H2OVLChatModel", "H2OVL Mississippi; its text part"},
    {"Eagle2_5_VLForConditionalGeneration", "Eagle 2.5; its text part"},
    {"DeepseekVLV2ForCausalLM", "DeepSeek VL 2; its text part"},
    {"DeepseekOCRForCausalLM", "DeepSeek OCR; its text part"},
    {"DeepseekOCR2ForCausalLM", "DeepSeek OCR 2; its text part"},
    {"DeepseekOcr2ForConditionalGeneration", "DeepSeek OCR 2, in transformers' form; its text part",
     kDeepseek},
    {"MultiModalityCausalLM", "DeepSeek VL 1 and Janus, as published; their text part", kLlama},
    {"DotsVLMForCausalLM", "dots.vlm1; its text part", "DeepseekV3ForCausalLM"},
    {"DeepseekVLHybridForConditionalGeneration",
     "DeepSeek VL 7B, in transformers' form; its text part"},
    {"Ovis", "Ovis 1.6 and 2; their text part"},
    {"Ovis2_5", "Ovis 2.5; its text part"},
    {"Ovis2_6ForCausalLM", "Ovis 2.6, dense; its text part"},
    {"Ovis2_6_MoeForCausalLM", "Ovis 2.6, mixtures; their text part"},
    {"KananaVForConditionalGeneration", "Kanana V; its text part", kLlama},
    {"MiDashengLMModel", "MiDashengLM; its text part", kQwen2},
    {"MusicFlamingoForConditionalGeneration", "Music Flamingo; its text part"},
    {"TarsierForConditionalGeneration", "Tarsier; its text part", kLlama},
    {"Tarsier2ForConditionalGeneration", "Tarsier 2; its text part", kQwen2},
    {"LocateAnythingForConditionalGeneration", "Locate Anything; its text part", kQwen2},
    {"MantisForConditionalGeneration", "Mantis; its text part"},
    {"MiniMaxVL01ForConditionalGeneration", "MiniMax VL 01; its text part",
     "MiniMaxText01ForCausalLM"},
    {"NVILAForConditionalGeneration", "NVILA; its text part", kQwen2},
    {"NVILALiteForConditionalGeneration", "NVILA Lite; its text part", kQwen2},
    {"POINTSV15ChatModel", "POINTS 1.5; its text part", kQwen2},
    {"GraniteSpeechPlusForConditionalGeneration", "Granite Speech Plus; its text part"},
    {"FunAsrNanoForConditionalGeneration", "Fun ASR Nano; its text part", kQwen3},
    {"MossTranscribeDiarizeForConditionalGeneration", "MOSS Transcribe; its text part", kQwen3},
    {"StepVLForConditionalGeneration", "Step 3 VL 10B; its text part", kQwen3},
    {"Sarashina2VisionForCausalLM", "Sarashina 2 Vision; its text part", kLlama},
    {"LlavaLlamaForCausalLM", "LLaVA 1.5 and 1.6, as published; their text part", kLlama},
    {"LlavaMistralForCausalLM", "LLaVA 1.6 Mistral, as published; its text part",
     "MistralForCausalLM"},
    {"LlavaQwenForCausalLM", "LLaVA-OneVision, as published; its text part", kQwen2},
    {"LlavaQwen2ForCausalLM", "FastVLM, as published; its text part", kQwen2},
    {"LlavaGemmaForCausalLM", "LLaVA-Gemma, as published; its text part", "GemmaForCausalLM"},
    {"MobileLlamaForCausalLM", "MobileVLM; its text part", kLlama},
    {"Phi4ForCausalLMV", "Phi-4 Reasoning Vision; its text part", "Phi3ForCausalLM"},
};

// Decoders of such models that have names of their own.
struct TextType {
  const char* model_type;
  const char* family;
  const char* defaults = "{}";  // where they are not the family's
};
constexpr TextType kTextTypes[] = {
    {"qwen2_5_omni_text", kQwen2},
    {"qwen3_omni_moe_text", "Qwen3MoeForCausalLM"},
    {"granite4_vision_text", "GraniteForCausalLM"},
    {"granite_docling_text", "GraniteForCausalLM"},
    {"deepseek_ocr2_text", kDeepseek},
    {"emu3_text_model", kLlama,
     R"({"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0,
         "max_position_embeddings": 9216})"},
    {"glm_ocr_text", "Glm4vForConditionalGeneration", R"({"attention_bias": false})"},
    {"hunyuan_vl_text", "HunYuanDenseV1ForCausalLM"},
    {"paddleocr_vl_text", kLlama},
    {"qwen3_vl_text", kQwen3},
};

const WrappedFamily* find_wrapped(const Json& file) {
  const auto names = file.find("architectures");
  if (names == file.end() || !names->is_array()) return nullptr;
  for (const Json& name : *names) {
    for (const WrappedFamily& family : kWrappedFamilies) {
      if (name == family.architecture) return &family;
    }
  }
  return nullptr;
}

constexpr const char* kTextFields[] = {"text_config", "llm_config", "language_config"};

// The object with the decoder's fields; null: they lie beside the others.
const Json* text_fields(const Json& file) {
  const auto thinker = file.find("thinker_config");
  if (thinker != file.end() && thinker->is_object()) return text_fields(*thinker);
  for (const char* name : kTextFields) {
    const auto found = file.find(name);
    if (found != file.end() && found->is_object()) return &*found;
  }
  return nullptr;
}

// Of MiniCPM-V and -o, whose fields lie beside the towers', by their version, a number or a text.
const char* family_of_version(const Json& file) {
  const auto found = file.find("version");
  if (found == file.end()) return nullptr;
  const std::string version = found->is_string() ? found->get<std::string>() : found->dump();
  if (version.starts_with("2.5") || version.starts_with("4.0") || version == "4") return kLlama;
  if (version.starts_with("2.6")) return kQwen2;
  return version.starts_with("4.5") ? kQwen3 : nullptr;
}

const TextType* text_type_of(const Json& text) {
  for (const TextType& type : kTextTypes) {
    if (text.value("model_type", Json()) == type.model_type) return &type;
  }
  return nullptr;
}

const char* family_of(const Json& text) {
  if (text.value("use_mla", Json()) == false) return kDeepseek;  // under V2's name
  const auto names = text.find("architectures");
  if (names != text.end() && names->is_array() && !names->empty() && (*names)[0].is_string()) {
    const Architecture* found = find_architecture((*names)[0].get<std::string>());
    if (found != nullptr) return found->name;
  }
  const auto type = text.find("model_type");
  if (type == text.end() || !type->is_string()) return nullptr;
  if (const TextType* own = text_type_of(text)) return own->family;
  return architecture_of_model_type(type->get_ref<const std::string&>());
}

// PaddleOCR's text part is Llama's but for a name.
void take_own_names(Json* text) {
  const auto bias = text->find("use_bias");
  if (bias == text->end()) return;
  const Json value = *bias;
  for (const char* name : {"attention_bias", "mlp_bias"}) (*text)[name] = value;
}

Status refuse_text(const WrappedFamily& family, const Json& text, const std::string& where) {
  const auto type = text.find("model_type");
  const std::string named = type != text.end() ? "of model_type " + type->dump().substr(0, 80)
                                               : "that does not say its model_type";
  return unsupported(where + ": '" + family.architecture + "' around a text part " + named +
                     " is not supported" + families_hint("", {}));
}

}  // namespace

std::span<const WrappedFamily> wrapped_families() { return kWrappedFamilies; }

Result<Json> text_part_of(const Json& file, const std::string& where) {
  const WrappedFamily* wrapped = find_wrapped(file);
  if (wrapped == nullptr) return file;
  const Json* inside = text_fields(file);
  Json text = inside != nullptr ? *inside : file;
  const char* family = inside != nullptr ? family_of(text) : family_of_version(file);
  if (family == nullptr) family = wrapped->family;
  if (family == nullptr) return refuse_text(*wrapped, text, where);
  for (const char* name : {"eos_token_id", "dtype", "torch_dtype", "tie_word_embeddings",
                           "quantization_config", "max_position_embeddings", "is_causal"}) {
    if (!text.contains(name) && file.contains(name)) text[name] = file[name];
  }
  if (const TextType* own = text_type_of(text)) {
    const Json defaults = Json::parse(own->defaults);
    for (const auto& [name, value] : defaults.items()) text.emplace(name, value);
  }
  take_own_names(&text);
  text["architectures"] = Json::array({family});
  text["is_text_part"] = true;
  return text;
}

Json text_overrides(const Json& file, const Json& overrides) {
  const Json* inside = file.contains("is_text_part") ? text_fields(overrides) : nullptr;
  if (inside == nullptr) return overrides;
  Json flat = overrides;
  flat.erase("thinker_config");
  for (const char* name : kTextFields) flat.erase(name);
  flat.update(*inside);
  return flat;
}

}  // namespace foretoken
