#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Models that read images or speech around a text part of another family, which text_config names.

// Llama's, Mistral's, Qwen 2's or Qwen 3's layer.
LayerSpec wrapped_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

Status translate_wrapped(const ConfigFields& fields, Json* json) {
  const Json* type = fields.find("model_type");
  if (type == nullptr || *type == "llama") return {};
  if (*type == "mistral") {
    if (fields.find("sliding_window") == nullptr) return {};
    return write_layer_types(fields, [](int32_t, int32_t) { return "sliding_attention"; }, json);
  }
  if (*type == "qwen2") {
    (*json)["attention_bias"] = true;
    (*json)["attention_out_bias"] = false;
    return {};
  }
  if (*type == "qwen3") {
    (*json)["use_qk_norm"] = true;
    return {};
  }
  return unsupported(fields.where() + ": a text part of model_type " + type->dump().substr(0, 80) +
                     " is not supported inside this model; supported: llama, mistral, qwen2, "
                     "qwen3");
}

Status read_wrapped(const ConfigFields& fields, ModelConfig* config) {
  return fields.read_flag("use_qk_norm", &config->qk_norm);
}

constexpr const char* kLlavaVision[] = {
    "vision_tower.",       "multi_modal_projector.",       "image_newline",
    "model.vision_tower.", "model.multi_modal_projector.", "model.image_newline"};
constexpr const char* kIdeficsVision[] = {"model.vision_model.", "model.connector."};
constexpr const char* kVoxtralSpeech[] = {"audio_tower.", "multi_modal_projector.",
                                          "model.audio_tower.", "model.multi_modal_projector."};

constexpr DecoderTraits::Place kLlavaPlaces[] = {
    {"language_model.model.", "language_model.lm_head.weight"},
    {"model.language_model.", "lm_head.weight"}};

constexpr Architecture wrapped(const char* name, const char* description,
                               std::span<const char* const> ignored) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"max_position_embeddings": 32768})",
      .decoder = {.places = {{kLlavaPlaces[0], kLlavaPlaces[1]}},
                  .ignored = ignored,
                  .layer = wrapped_layer},
      .text_config = true,
      .translate = translate_wrapped,
      .read = read_wrapped,
  };
}

constexpr Architecture idefics(const char* name, const char* description) {
  Architecture made = wrapped(name, description, kIdeficsVision);
  made.decoder.places = {{{"model.text_model.", "lm_head.weight"}, {nullptr, nullptr}}};
  return made;
}

}  // namespace

// Liu et al. 2023: a Llama that reads images, of which only the text part is read. Its files leave
// out what Llama 7B has.
constinit const Architecture kLlavaArchitecture = {
    .name = "LlavaForConditionalGeneration",
    .description = "LLaVA 1.5, Pixtral; their text part",
    .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048})",
    .decoder = {.places = {{kLlavaPlaces[0], kLlavaPlaces[1]}},
                .ignored = kLlavaVision,
                .layer = wrapped_layer},
    .text_config = true,
    .translate = translate_wrapped,
    .read = read_wrapped,
};

// Liu et al. 2024, Li et al. 2024.
constinit const Architecture kLlavaNextArchitecture =
    wrapped("LlavaNextForConditionalGeneration", "LLaVA-NeXT; its text part", kLlavaVision);
constinit const Architecture kLlavaOnevisionArchitecture = wrapped(
    "LlavaOnevisionForConditionalGeneration", "LLaVA-OneVision; its text part", kLlavaVision);

// Zhu et al. 2025, in transformers' form.
constinit const Architecture kInternVlArchitecture =
    wrapped("InternVLForConditionalGeneration",
            "InternVL 3 and 3.5, in transformers' form; "
            "their text part",
            kLlavaVision);

// Mistral AI 2025: a Llama that hears.
constinit const Architecture kVoxtralArchitecture =
    wrapped("VoxtralForConditionalGeneration", "Voxtral; its text part", kVoxtralSpeech);

// Laurencon et al. 2024, Marafioti et al. 2025.
constinit const Architecture kIdefics3Architecture = idefics(
    "Idefics3ForConditionalGeneration", "Idefics 3, SmolVLM, Granite Docling; their text part");
constinit const Architecture kSmolVlmArchitecture =
    idefics("SmolVLMForConditionalGeneration", "SmolVLM 2; its text part");

}  // namespace foretoken
