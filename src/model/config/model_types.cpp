#include "model/config/model_types.h"

namespace foretoken {
namespace {

struct ModelType {
  std::string_view name;
  const char* architecture;
};

constexpr ModelType kModelTypes[] = {
    {"apertus", "ApertusForCausalLM"},
    {"arcee", "ArceeForCausalLM"},
    {"baichuan", "BaichuanForCausalLM"},
    {"bitnet", "BitNetForCausalLM"},
    {"bloom", "BloomForCausalLM"},
    {"chatglm", "ChatGLMModel"},
    {"cohere", "CohereForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"cwm", "CwmForCausalLM"},
    {"dbrx", "DbrxForCausalLM"},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM"},
    {"diffllama", "DiffLlamaForCausalLM"},
    {"doge", "DogeForCausalLM"},
    {"dots1", "Dots1ForCausalLM"},
    {"ernie4_5", "Ernie4_5ForCausalLM"},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
    {"exaone", "ExaoneForCausalLM"},
    {"exaone4", "Exaone4ForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"falcon_h1", "FalconH1ForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3", "Gemma3ForConditionalGeneration"},
    {"gemma3_text", "Gemma3ForCausalLM"},
    {"gemma3n", "Gemma3nForConditionalGeneration"},
    {"gemma3n_text", "Gemma3nForCausalLM"},
    {"gemma4", "Gemma4ForConditionalGeneration"},
    {"gemma4_text", "Gemma4ForCausalLM"},
    {"glm", "GlmForCausalLM"},
    {"glm4", "Glm4ForCausalLM"},
    {"glm4_moe", "Glm4MoeForCausalLM"},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"},
    {"gpt2", "GPT2LMHeadModel"},
    {"gpt_bigcode", "GPTBigCodeForCausalLM"},
    {"gpt_neo", "GPTNeoForCausalLM"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"gpt_oss", "GptOssForCausalLM"},
    {"gptj", "GPTJForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granitemoe", "GraniteMoeForCausalLM"},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
    {"helium", "HeliumForCausalLM"},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
    {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"internlm3", "InternLM3ForCausalLM"},
    {"kimi_k2", "DeepseekV3ForCausalLM"},
    {"kimi_k25", "KimiK25ForConditionalGeneration"},
    {"llama", "LlamaForCausalLM"},
    {"llama4", "Llama4ForConditionalGeneration"},
    {"llama4_text", "Llama4ForCausalLM"},
    {"longcat_flash", "LongcatFlashForCausalLM"},
    {"mimo", "MiMoForCausalLM"},
    {"mimo_v2_flash", "MiMoV2FlashForCausalLM"},
    {"minicpm", "MiniCPMForCausalLM"},
    {"minicpm3", "MiniCPM3ForCausalLM"},
    {"minimax_m2", "MiniMaxM2ForCausalLM"},
    {"ministral", "MinistralForCausalLM"},
    {"ministral3", "Ministral3ForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mistral3", "Mistral3ForConditionalGeneration"},
    {"mistral4", "Mistral4ForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},
    {"mpt", "MptForCausalLM"},
    {"nanochat", "NanoChatForCausalLM"},
    {"nemotron", "NemotronForCausalLM"},
    {"nemotron-nas", "DeciLMForCausalLM"},
    {"nemotron_h", "NemotronHForCausalLM"},
    {"olmo", "OlmoForCausalLM"},
    {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},
    {"olmoe", "OlmoeForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"phi", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM"},
    {"phimoe", "PhimoeForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"},
    {"qwen2_moe", "Qwen2MoeForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"qwen3_next", "Qwen3NextForCausalLM"},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration"},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration"},
    {"seed_oss", "SeedOssForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},
    {"stablelm", "StableLmForCausalLM"},
    {"starcoder2", "Starcoder2ForCausalLM"},
    {"youtu", "YoutuForCausalLM"},
};

}  // namespace

const char* architecture_of_model_type(std::string_view model_type) {
  for (const ModelType& type : kModelTypes) {
    if (type.name == model_type) return type.architecture;
  }
  return nullptr;
}

}  // namespace foretoken
