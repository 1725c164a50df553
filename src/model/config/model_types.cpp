#include "model/config/model_types.h"

#include <utility>
#include <vector>

#include "model/config/families.h"

namespace foretoken {
namespace {

struct ModelType {
  std::string_view name;
  const char* architecture;
};

constexpr ModelType kModelTypes[] = {
    {"afmoe", "AfmoeForCausalLM"},
    {"albert", "AlbertModel"},
    {"apertus", "ApertusForCausalLM"},
    {"apertus1p5", "Apertus1p5ForConditionalGeneration"},
    {"apertus1p5_text", "Apertus1p5TextForCausalLM"},
    {"arcee", "ArceeForCausalLM"},
    {"aria", "AriaForConditionalGeneration"},
    {"aria_text", "AriaTextForCausalLM"},
    {"axk1", "AXK1ForCausalLM"},
    {"axk2", "AXK2ForCausalLM"},
    {"aya_vision", "AyaVisionForConditionalGeneration"},
    {"baichuan", "BaichuanForCausalLM"},
    {"bailing_hybrid", "BailingHybridForCausalLM"},
    {"bailing_moe", "BailingMoeForCausalLM"},
    {"bamba", "BambaForCausalLM"},
    {"bert", "BertModel"},
    {"bitnet", "BitNetForCausalLM"},
    {"bloom", "BloomForCausalLM"},
    {"camembert", "CamembertModel"},
    {"chatglm", "ChatGLMModel"},
    {"codegen", "CodeGenForCausalLM"},
    {"cohere", "CohereForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"cohere2_moe", "Cohere2MoeForCausalLM"},
    {"cohere2_vision", "Cohere2VisionForConditionalGeneration"},
    {"cohere_compass", "CohereCompassForConditionalGeneration"},
    {"cohere_compass_text", "CohereCompassForCausalLM"},
    {"cwm", "CwmForCausalLM"},
    {"dbrx", "DbrxForCausalLM"},
    {"deberta-v2", "DebertaV2Model"},
    {"deepseek", "DeepseekForCausalLM"},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM"},
    {"deepseek_v32", "DeepseekV32ForCausalLM"},
    {"deepseek_v4", "DeepseekV4ForCausalLM"},
    {"diffllama", "DiffLlamaForCausalLM"},
    {"distilbert", "DistilBertModel"},
    {"doge", "DogeForCausalLM"},
    {"dots1", "Dots1ForCausalLM"},
    {"electra", "ElectraModel"},
    {"ernie", "ErnieModel"},
    {"ernie4_5", "Ernie4_5ForCausalLM"},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
    {"ernie4_5_moe_vl", "Ernie4_5_VLMoeForConditionalGeneration"},
    {"ernie4_5_vl_moe", "Ernie4_5_VLMoeForConditionalGeneration"},
    {"eurobert", "EuroBertModel"},
    {"exaone", "ExaoneForCausalLM"},
    {"exaone4", "Exaone4ForCausalLM"},
    {"exaone4_5", "Exaone4_5_ForConditionalGeneration"},
    {"exaone_moe", "ExaoneMoeForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"falcon_h1", "FalconH1ForCausalLM"},
    {"falcon_mamba", "FalconMambaForCausalLM"},
    {"flint", "FlintForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3", "Gemma3ForConditionalGeneration"},
    {"gemma3_text", "Gemma3ForCausalLM"},
    {"gemma3n", "Gemma3nForConditionalGeneration"},
    {"gemma3n_text", "Gemma3nForCausalLM"},
    {"gemma4", "Gemma4ForConditionalGeneration"},
    {"gemma4_text", "Gemma4ForCausalLM"},
    {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration"},
    {"gemma4_unified_text", "Gemma4UnifiedForCausalLM"},
    {"glm", "GlmForCausalLM"},
    {"glm4", "Glm4ForCausalLM"},
    {"glm46v", "Glm46VForConditionalGeneration"},
    {"glm4_moe", "Glm4MoeForCausalLM"},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"},
    {"glm4v", "Glm4vForConditionalGeneration"},
    {"glm4v_moe", "Glm4vMoeForConditionalGeneration"},
    {"glm5_next", "Glm5NextForConditionalGeneration"},
    {"glm5_next_text", "Glm5NextForConditionalGeneration"},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM"},
    {"gpt2", "GPT2LMHeadModel"},
    {"gpt_bigcode", "GPTBigCodeForCausalLM"},
    {"gpt_neo", "GPTNeoForCausalLM"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"gpt_oss", "GptOssForCausalLM"},
    {"gptj", "GPTJForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granite_swa", "GraniteSWAForCausalLM"},
    {"granitemoe", "GraniteMoeForCausalLM"},
    {"granitemoe_swa", "GraniteMoeSWAForCausalLM"},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
    {"gte", "GteModel"},
    {"helium", "HeliumForCausalLM"},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
    {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
    {"hy_v3", "HYV3ForCausalLM"},
    {"hy_v4", "HYV4ForCausalLM"},
    {"hy_v4_vl", "HYV4VLForConditionalGeneration"},
    {"hy_v4_vl_text", "HYV4ForCausalLM"},
    {"hyperclovax", "HyperCLOVAXForCausalLM"},
    {"internlm", "InternLMForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"internlm3", "InternLM3ForCausalLM"},
    {"jais", "JAISLMHeadModel"},
    {"jais2", "Jais2ForCausalLM"},
    {"jamba", "JambaForCausalLM"},
    {"jina_embeddings_v3", "JinaEmbeddingsV3Model"},
    {"kimi_k2", "DeepseekV3ForCausalLM"},
    {"kimi_k25", "KimiK25ForConditionalGeneration"},
    {"kimi_k3", "KimiK3ForConditionalGeneration"},
    {"kimi_linear", "KimiLinearForCausalLM"},
    {"kimi_vl", "KimiVLForConditionalGeneration"},
    {"kolibri1", "Kolibri1ForCausalLM"},
    {"kormo", "KORMoForCausalLM"},
    {"laguna", "LagunaForCausalLM"},
    {"lara_mini", "LaraMiniForCausalLM"},
    {"lfm2", "Lfm2ForCausalLM"},
    {"lfm2_moe", "Lfm2MoeForCausalLM"},
    {"lfm2_vl", "Lfm2VlForConditionalGeneration"},
    {"lfm3", "Lfm3ForCausalLM"},
    {"llama", "LlamaForCausalLM"},
    {"llama4", "Llama4ForConditionalGeneration"},
    {"llama4_text", "Llama4ForCausalLM"},
    {"llama_bidirec", "LlamaBidirectionalModel"},
    {"longcat_flash", "LongcatFlashForCausalLM"},
    {"maincoder", "MaincoderForCausalLM"},
    {"mamba", "MambaForCausalLM"},
    {"mamba2", "Mamba2ForCausalLM"},
    {"mellum", "MellumForCausalLM"},
    {"mimo", "MiMoForCausalLM"},
    {"mimo_v2", "MiMoV2ForCausalLM"},
    {"mimo_v2_flash", "MiMoV2FlashForCausalLM"},
    {"minicpm", "MiniCPMForCausalLM"},
    {"minicpm3", "MiniCPM3ForCausalLM"},
    {"minimax", "MiniMaxForCausalLM"},
    {"minimax_m2", "MiniMaxM2ForCausalLM"},
    {"minimax_m3", "MiniMaxM3ForCausalLM"},
    {"minimax_m3_vl_text", "MiniMaxM3ForCausalLM"},
    {"ministral", "MinistralForCausalLM"},
    {"ministral3", "Ministral3ForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mistral3", "Mistral3ForConditionalGeneration"},
    {"mistral4", "Mistral4ForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},
    {"mllama", "MllamaForConditionalGeneration"},
    {"mllama_text_model", "MllamaForConditionalGeneration"},
    {"modernbert", "ModernBertModel"},
    {"mpnet", "MPNetModel"},
    {"molmo", "MolmoForCausalLM"},
    {"molmo2", "Molmo2ForConditionalGeneration"},
    {"mpt", "MptForCausalLM"},
    {"muse_glimmer", "MuseGlimmerForConditionalGeneration"},
    {"muse_glimmer_text", "MuseGlimmerForCausalLM"},
    {"nanochat", "NanoChatForCausalLM"},
    {"nanbeige", "NanbeigeForCausalLM"},
    {"nemotron", "NemotronForCausalLM"},
    {"nemotron-nas", "DeciLMForCausalLM"},
    {"nemotron_h", "NemotronHForCausalLM"},
    {"nemotron_h_puzzle", "NemotronHForCausalLM"},
    {"new", "GteModel"},
    {"nomic_bert", "NomicBertModel"},
    {"olmo", "OlmoForCausalLM"},
    {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},
    {"olmo_hybrid", "OlmoHybridForCausalLM"},
    {"olmoe", "OlmoeForCausalLM"},
    {"openai-gpt", "OpenAIGPTLMHeadModel"},
    {"openelm", "OpenELMForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"orion", "OrionForCausalLM"},
    {"ouro", "OuroForCausalLM"},
    {"phi", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM"},
    {"phimoe", "PhimoeForCausalLM"},
    {"plamo3", "Plamo3ForCausalLM"},
    {"qwen", "QWenLMHeadModel"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"},
    {"qwen2_moe", "Qwen2MoeForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_5", "Qwen3_5ForConditionalGeneration"},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration"},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"},
    {"qwen3_5_text", "Qwen3_5ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"qwen3_next", "Qwen3NextForCausalLM"},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration"},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration"},
    {"roberta", "RobertaModel"},
    {"rwkv7", "RWKV7ForCausalLM"},
    {"sarvam_mla", "SarvamMLAForCausalLM"},
    {"sarvam_moe", "SarvamMoEForCausalLM"},
    {"seed_oss", "SeedOssForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},
    {"solar_open", "SolarOpenForCausalLM"},
    {"spark2_5", "Spark2_5ForCausalLM"},
    {"stablelm", "StableLmForCausalLM"},
    {"starcoder2", "Starcoder2ForCausalLM"},
    {"step3p5", "Step3p5ForCausalLM"},
    {"step3p7", "Step3p7ForConditionalGeneration"},
    {"telechat", "TeleChat2ForCausalLM"},
    {"xlm-roberta", "XLMRobertaModel"},
    {"youtu", "YoutuForCausalLM"},
    {"zamba2", "Zamba2ForCausalLM"},
};

// Families that transformers 5 loads by the class of another one, whose name it saves them with,
// under their own model_type and with their tensors under their first names.
struct SavedAs {
  const char* model_type;
  const char* saved;
  const char* own;
};
constexpr SavedAs kSavedAs[] = {
    {"exaone", "LlamaForCausalLM", "ExaoneForCausalLM"},
    {"sarvam_mla", "DeepseekV3ForCausalLM", "SarvamMLAForCausalLM"},
    {"sarvam_moe", "Glm4MoeForCausalLM", "SarvamMoEForCausalLM"},
};

// Jina's models have classes of others, from which their positions tell them.
struct PlacedAs {
  const char* positions;
  const char* saved;
  const char* own;
};
constexpr PlacedAs kPlacedAs[] = {
    {"alibi", "BertModel", "JinaBertModel"},
    {"rotary", "XLMRobertaModel", "JinaEmbeddingsV3Model"},
};

// Names of classes that compute the same, by one of which vLLM or transformers loads them, too.
constexpr std::pair<std::string_view, const char*> kSameClass[] = {
    {"AlbertForMaskedLM", "AlbertModel"},
    {"AlbertForPreTraining", "AlbertModel"},
    {"AlbertForSequenceClassification", "AlbertModel"},
    {"AquilaForCausalLM", "LlamaForCausalLM"},
    {"AquilaModel", "LlamaForCausalLM"},
    {"BailingMoeV3ForCausalLM", "BailingHybridForCausalLM"},
    {"BertForMaskedLM", "BertModel"},
    {"BertForSequenceClassification", "BertModel"},
    {"CamembertForSequenceClassification", "CamembertModel"},
    {"DebertaV2ForMaskedLM", "DebertaV2Model"},
    {"DebertaV2ForSequenceClassification", "DebertaV2Model"},
    {"DistilBertForMaskedLM", "DistilBertModel"},
    {"DistilBertForSequenceClassification", "DistilBertModel"},
    {"ElectraForMaskedLM", "ElectraModel"},
    {"ElectraForPreTraining", "ElectraModel"},
    {"ElectraForSequenceClassification", "ElectraModel"},
    {"Emu3ForCausalLM", "LlamaForCausalLM"},
    {"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"},
    {"Ernie4_5_VL_MoeForConditionalGeneration", "Ernie4_5_VLMoeForConditionalGeneration"},
    {"ErnieForMaskedLM", "ErnieModel"},
    {"ErnieForSequenceClassification", "ErnieModel"},
    {"EuroBertForMaskedLM", "EuroBertModel"},
    {"EuroBertForSequenceClassification", "EuroBertModel"},
    {"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
    {"GritLM", "MistralForCausalLM"},
    {"GteForMaskedLM", "GteModel"},
    {"GteForSequenceClassification", "GteModel"},
    {"GteNewForSequenceClassification", "GteModel"},
    {"GteNewModel", "GteModel"},
    {"JinaBertForMaskedLM", "JinaBertModel"},
    {"JinaEmbeddingsV3ForMaskedLM", "JinaEmbeddingsV3Model"},
    {"JinaEmbeddingsV3ForSequenceClassification", "JinaEmbeddingsV3Model"},
    {"JinaBertForSequenceClassification", "JinaBertModel"},
    {"Kimi_K25ForConditionalGeneration", "KimiK25ForConditionalGeneration"},
    {"LFM2ForCausalLM", "Lfm2ForCausalLM"},
    {"LLaMAForCausalLM", "LlamaForCausalLM"},
    {"MPNetForMaskedLM", "MPNetModel"},
    {"MPNetForSequenceClassification", "MPNetModel"},
    {"MiniMaxM3SparseForCausalLM", "MiniMaxM3ForCausalLM"},
    {"MiniMaxM3VLForCausalLM", "MiniMaxM3ForCausalLM"},
    {"MiniMaxM3VLForConditionalGeneration", "MiniMaxM3SparseForConditionalGeneration"},
    {"ModernBertForMaskedLM", "ModernBertModel"},
    {"ModernBertForSequenceClassification", "ModernBertModel"},
    {"NemotronHPuzzleForCausalLM", "NemotronHForCausalLM"},
    {"NewForMaskedLM", "GteModel"},
    {"NewForSequenceClassification", "GteModel"},
    {"NewModel", "GteModel"},
    {"PLaMo3ForCausalLM", "Plamo3ForCausalLM"},
    {"Param2MoEForCausalLM", "SarvamMoEForCausalLM"},
    {"QwenVLForConditionalGeneration", "QWenLMHeadModel"},
    {"RWForCausalLM", "FalconForCausalLM"},
    {"Rnj1ForCausalLM", "Gemma3ForCausalLM"},
    {"RobertaForMaskedLM", "RobertaModel"},
    {"RobertaForSequenceClassification", "RobertaModel"},
    {"StableLMEpochForCausalLM", "StableLmForCausalLM"},
    {"Step3p7FlashForCausalLM", "Step3p5ForCausalLM"},
    {"TeleChat3ForCausalLM", "LlamaForCausalLM"},
    {"XLMRobertaForMaskedLM", "XLMRobertaModel"},
    {"XLMRobertaForSequenceClassification", "XLMRobertaModel"},
    {"MllamaForCausalLM", "MllamaForConditionalGeneration"},
    {"XverseForCausalLM", "LlamaForCausalLM"},
    {"AlbertForTokenClassification", "AlbertModel"},
    {"BertForTokenClassification", "BertModel"},
    {"CamembertForTokenClassification", "CamembertModel"},
    {"DebertaV2ForTokenClassification", "DebertaV2Model"},
    {"DistilBertForTokenClassification", "DistilBertModel"},
    {"ElectraForTokenClassification", "ElectraModel"},
    {"ErnieForTokenClassification", "ErnieModel"},
    {"MPNetForTokenClassification", "MPNetModel"},
    {"ModernBertForTokenClassification", "ModernBertModel"},
    {"RobertaForTokenClassification", "RobertaModel"},
    {"XLMRobertaForTokenClassification", "XLMRobertaModel"},
    {"GteForTokenClassification", "GteModel"},
    {"GteNewForTokenClassification", "GteModel"},
    {"NewForTokenClassification", "GteModel"},
    {"HF_ColBERT", "BertModel"},
    {"ColBERTModernBertModel", "ModernBertModel"},
};

}  // namespace

std::string own_class_name(std::string name, const nlohmann::json& file) {
  const nlohmann::json type = file.value("model_type", nlohmann::json());
  for (const SavedAs& family : kSavedAs) {
    if (type == family.model_type && name == family.saved) name = family.own;
  }
  for (const auto& [other, own] : kSameClass) {
    if (name == other) name = own;
  }
  const nlohmann::json positions = file.value("position_embedding_type", nlohmann::json());
  for (const PlacedAs& family : kPlacedAs) {
    if (positions == family.positions && name == family.saved) name = family.own;
  }
  return name;
}

const char* architecture_of_model_type(std::string_view model_type) {
  for (const ModelType& type : kModelTypes) {
    if (type.name == model_type) return type.architecture;
  }
  return nullptr;
}

std::string known_model_types_hint(const std::string& model_type) {
  std::vector<std::string> known;
  for (const ModelType& type : kModelTypes) known.emplace_back(type.name);
  return families_hint(model_type, known);
}

}  // namespace foretoken
