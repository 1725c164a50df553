#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/files/containers/json_file.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken::test {

// One prompt of a golden case: reference logits at some positions, then greedy tokens.
struct GoldenPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;
  std::vector<int32_t> greedy;
  std::vector<std::vector<float>> logits;
};

// What transformers made of one model and one set of changes to its config (tests/golden).
struct GoldenCase {
  std::string name;
  std::string folder;      // of the model
  std::string references;  // golden.safetensors
  std::string prefix;      // of the tensors there
  std::string kind;        // "fp32" or "bf16_weights"
  std::string hf_overrides;
  int32_t max_model_len = 0;
  std::shared_ptr<const nlohmann::json> prompts;  // shared: googletest copies its parameters
};

// Whether a sum of float32 in another order than the reference's and the CPU's turns a code of rows
// that are rounded to eight bits (BitNet): a logit is off by about a hundredth then, and the text
// is another one.
inline bool turns_codes_elsewhere(const GoldenCase& golden) {
  return golden.name.starts_with("bitnet-online");
}

inline std::string golden_folder() {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/";
}

// A case of tests/golden/<name>, whose model may lie elsewhere.
inline GoldenCase read_golden_case(const std::string& name, const std::string& folder,
                                   const std::string& kind) {
  const std::string golden = golden_folder() + name;
  return {name,
          folder,
          golden + "/golden.safetensors",
          "",
          kind,
          "",
          0,
          std::make_shared<const nlohmann::json>(
              read_json_file(golden + "/golden.json").value().at(kind))};
}

// Every variant of these models in tests/golden/architectures.
inline std::vector<GoldenCase> golden_cases(std::initializer_list<const char*> models) {
  std::vector<GoldenCase> cases;
  for (const char* model : models) {
    const std::string folder = golden_folder() + "architectures/" + model;
    const auto json = read_json_file(folder + "/golden.json").value();
    for (const auto& variant : json.at("variants")) {
      const std::string name = variant.at("name");
      cases.push_back({std::string(model) + "-" + name, folder, folder + "/golden.safetensors",
                       name + ".", "fp32", variant.at("hf_overrides").dump(),
                       variant.at("max_model_len"),
                       std::make_shared<const nlohmann::json>(variant.at("fp32"))});
    }
  }
  return cases;
}

// Those with many variants, that show every kind of position and window.
inline std::vector<GoldenCase> architecture_cases() {
  return golden_cases({"gemma2", "gemma3", "gemma3-vision", "llama", "mistral", "phi3", "qwen2",
                       "qwen3", "smollm3"});
}

// The other families, which differ in what layers are made of.
inline std::vector<GoldenCase> family_cases() {
  return golden_cases(
      {"apertus",         "arcee",      "bitnet",     "bloom",    "cohere",
       "cohere2",         "deci",       "ernie4_5",   "exaone4",  "falcon",
       "falcon-large",    "falcon-rw",  "gemma",      "gemma4",   "gemma4-large",
       "gemma3n",         "glm",        "glm4",       "gpt2",     "gpt_neox",
       "gpt_neox-serial", "granite",    "helium",     "hunyuan",  "internlm3",
       "llama4",          "mimo",       "ministral3", "mistral3", "mpt",
       "nemotron",        "olmo2",      "olmo3",      "opt",      "qwen2-vl",
       "qwen2_5-vl",      "qwen3-vl",   "seed-oss",   "stablelm", "stablelm-parallel",
       "starcoder2",      "vaultgemma", "youtu"});
}

// Those that were published before most of the above, or under names of their own.
inline std::vector<GoldenCase> early_cases() {
  return golden_cases({"codegen",        "cwm",           "jais",         "kormo",
                       "openai_gpt",     "openelm",       "ouro",         "qwen",
                       "spark",          "nanbeige",      "muse_glimmer", "diffllama",
                       "doge",           "glm4v",         "granite_swa",  "hyperclovax",
                       "jais2",          "nanochat",      "gpt_neo",      "baichuan",
                       "baichuan-13b",   "glm_ocr",       "hunyuan_vl",   "internvl_chat",
                       "baichuan2",      "bitnet-online", "apertus1p5",   "granite4",
                       "gemma4-unified", "chatglm",       "exaone",       "maincoder",
                       "orion",          "internlm",      "mllama",       "cohere_compass",
                       "gpt_bigcode",    "gptj",          "internlm2",    "minicpm",
                       "minicpm3",       "olmo",          "opt-350m",     "phi",
                       "telechat",       "plamo3",        "molmo"});
}

// Layers that keep a state of each sequence.
inline std::vector<GoldenCase> recurrent_cases() {
  return golden_cases({"lfm2",
                       "lfm2_moe",
                       "lfm3",
                       "granite4-h",
                       "bamba",
                       "mamba2",
                       "nemotron_h",
                       "nemotron_h-moe",
                       "nemotron_h-latent",
                       "bailing_hybrid",
                       "falcon_h1",
                       "falcon_mamba",
                       "jamba",
                       "mamba",
                       "zamba2",
                       "kimi_linear",
                       "kimi_k3",
                       "bailing_v2_5",
                       "minimax",
                       "olmo_hybrid",
                       "qwen3_5",
                       "qwen3_5_moe",
                       "qwen3_next",
                       "deepseek_v4",
                       "rwkv7",
                       "lara_mini",
                       "glm5_next",
                       "bailing_moe_v3",
                       "nemotron_h-puzzle"});
}

// Mixtures of experts, some of them with latent attention.
inline std::vector<GoldenCase> mixture_cases() {
  return golden_cases({"axk1",
                       "axk2",
                       "trinity",
                       "laguna",
                       "kolibri1",
                       "step3p7",
                       "flint",
                       "cohere2_vision-moe",
                       "sarvam_moe",
                       "sarvam_mla",
                       "bailing_moe",
                       "bailing_moe_v2",
                       "cohere2_moe",
                       "cohere2_moe-mean",
                       "granite4-moe",
                       "dbrx",
                       "mimo_v2",
                       "deepseek_v1",
                       "deepseek_v2",
                       "deepseek_v2-lite",
                       "deepseek_v3",
                       "deepseek_v3-fp8",
                       "deepseek_v32",
                       "glm_moe_dsa",
                       "aria_text",
                       "dots1",
                       "ernie4_5_moe",
                       "ernie4_5_vl_moe",
                       "glm4_moe",
                       "glm4_moe_lite",
                       "granitemoe",
                       "granitemoeshared",
                       "exaone_moe",
                       "flex_olmo",
                       "glm4v_moe",
                       "granitemoe_swa",
                       "hy_v3",
                       "hy_v4",
                       "mellum",
                       "solar_open",
                       "gemma4-moe",
                       "gpt_oss",
                       "ernie4_5_moe-bias",
                       "hunyuan-moe",
                       "kimi_k2",
                       "kimi_k25",
                       "kimi_vl",
                       "llama4-moe",
                       "longcat_flash",
                       "minimax_m2",
                       "minimax_m3",
                       "mistral4",
                       "mixtral",
                       "olmoe",
                       "phimoe",
                       "qwen2_moe",
                       "qwen3_moe",
                       "qwen3_vl_moe",
                       "molmo2",
                       "molmo2-o"});
}

inline std::vector<GoldenPrompt> golden_prompts(const GoldenCase& golden) {
  const auto file = SafetensorsFile::open(golden.references).value();
  std::vector<GoldenPrompt> prompts;
  for (const auto& entry : *golden.prompts) {
    GoldenPrompt prompt{entry.at("ids"), entry.at("positions"), entry.at("greedy"), {}};
    const TensorView& tensor = file->tensors().at(
        golden.prefix + "prompt" + std::to_string(prompts.size()) + ".logits." + golden.kind);
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
    const auto vocab = static_cast<ptrdiff_t>(tensor.shape.at(1));
    for (auto at = values.begin(); at != values.end(); at += vocab) {
      prompt.logits.emplace_back(at, at + vocab);
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace foretoken::test
