#include "gguf/later_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "gguf/gguf_bytes.h"
#include "gguf/hf_config.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// As the package gguf has them, and what llama.cpp has beyond it; clip is no model.
constexpr const char* kKnown[] = {"afmoe",
                                  "apertus",
                                  "arcee",
                                  "arctic",
                                  "arwkv7",
                                  "baichuan",
                                  "bailingmoe",
                                  "bailingmoe2",
                                  "bailingmoe3",
                                  "bert",
                                  "bitnet",
                                  "bloom",
                                  "chameleon",
                                  "chatglm",
                                  "codeshell",
                                  "cogvlm",
                                  "cohere2",
                                  "cohere2moe",
                                  "command-r",
                                  "dbrx",
                                  "deci",
                                  "deepseek",
                                  "deepseek2",
                                  "deepseek2-ocr",
                                  "deepseek32",
                                  "deepseek4",
                                  "deepseek41",
                                  "dflash",
                                  "dots1",
                                  "dots3note",
                                  "dream",
                                  "eagle3",
                                  "ernie4_5",
                                  "ernie4_5-moe",
                                  "eurobert",
                                  "exaone",
                                  "exaone-moe",
                                  "exaone4",
                                  "falcon",
                                  "falcon-h1",
                                  "gemma",
                                  "gemma-embedding",
                                  "gemma2",
                                  "gemma3",
                                  "gemma3n",
                                  "gemma4",
                                  "gemma4-assistant",
                                  "glm-dsa",
                                  "glm4",
                                  "glm4moe",
                                  "glm5-next",
                                  "gpt-oss",
                                  "gpt2",
                                  "gptj",
                                  "gptneox",
                                  "granite",
                                  "granite_swa",
                                  "granitehybrid",
                                  "granitemoe",
                                  "graniteswitch",
                                  "grok",
                                  "grovemoe",
                                  "hrm_text",
                                  "hunyuan-dense",
                                  "hunyuan-moe",
                                  "hunyuan_vl",
                                  "hy_v3",
                                  "hy_v4",
                                  "internlm2",
                                  "jais",
                                  "jais2",
                                  "jamba",
                                  "jina-bert-v2",
                                  "jina-bert-v3",
                                  "kimi-k3",
                                  "kimi-linear",
                                  "laguna",
                                  "lfm2",
                                  "lfm2moe",
                                  "llada",
                                  "llada-moe",
                                  "llama",
                                  "llama-embed",
                                  "llama4",
                                  "maincoder",
                                  "mamba",
                                  "mamba2",
                                  "maple",
                                  "mellum",
                                  "mimo2",
                                  "minicpm",
                                  "minicpm3",
                                  "minimax-01",
                                  "minimax-m2",
                                  "minimax-m3",
                                  "mistral3",
                                  "mistral4",
                                  "modern-bert",
                                  "mpt",
                                  "muse-glimmer",
                                  "nanbeige",
                                  "nemotron",
                                  "nemotron_h",
                                  "nemotron_h_moe",
                                  "neo-bert",
                                  "nomic-bert",
                                  "nomic-bert-moe",
                                  "olmo",
                                  "olmo2",
                                  "olmoe",
                                  "openelm",
                                  "orion",
                                  "paddleocr",
                                  "pangu-embedded",
                                  "phi2",
                                  "phi3",
                                  "phimoe",
                                  "plamo",
                                  "plamo2",
                                  "plamo3",
                                  "plm",
                                  "pockettts",
                                  "qwen",
                                  "qwen2",
                                  "qwen2moe",
                                  "qwen2vl",
                                  "qwen3",
                                  "qwen35",
                                  "qwen35moe",
                                  "qwen3moe",
                                  "qwen3next",
                                  "qwen3tts",
                                  "qwen3vl",
                                  "qwen3vlmoe",
                                  "qwen4exp",
                                  "refact",
                                  "rnd1",
                                  "rwkv6",
                                  "rwkv6qwen2",
                                  "rwkv7",
                                  "seed_oss",
                                  "smallthinker",
                                  "smollm3",
                                  "spark2_5",
                                  "stablelm",
                                  "starcoder",
                                  "starcoder2",
                                  "step35",
                                  "t5",
                                  "t5encoder",
                                  "talkie",
                                  "wavtokenizer-dec",
                                  "xverse"};

const GgufArchitecture& later(std::string_view name) {
  for (const GgufArchitecture& architecture : later_gguf_architectures()) {
    if (architecture.name == name) return architecture;
  }
  ADD_FAILURE() << name;
  return later_gguf_architectures()[0];
}

TEST(LaterArchitectures, ArePartOfTheWhole) {
  for (const GgufArchitecture& architecture : later_gguf_architectures()) {
    const auto all = gguf_architectures();
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.name == architecture.name; }),
              1)
        << architecture.name;
  }
}

TEST(LaterArchitectures, NamesOfTheirOwnAndBack) {
  for (const auto& [family, theirs, ours] :
       {std::tuple("muse-glimmer", "blk.3.attn_gate.weight",
                   "model.layers.3.self_attn.gate_proj.weight"),
        std::tuple("muse-glimmer", "blk.3.ffn_norm.weight",
                   "model.layers.3.pre_feedforward_layernorm.weight"),
        std::tuple("orion", "blk.0.attn_norm.bias", "model.layers.0.input_layernorm.bias")}) {
    EXPECT_EQ(hf_tensor_name(later(family), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(later(family), ours), theirs);
  }
}

TEST(LaterArchitectures, FactorsOfNormsAreNoTensors) {
  const GgufArchitecture& glimmer = later("muse-glimmer");
  EXPECT_TRUE(is_config_tensor(glimmer, "blk.11.attn_q_norm.weight"));
  EXPECT_FALSE(is_config_tensor(glimmer, "blk.11.attn_norm.weight"));
  EXPECT_FALSE(is_config_tensor(later("maincoder"), "blk.11.attn_q_norm.weight"));
  EXPECT_FALSE(is_config_tensor(glimmer, "blk."));
}

// A file of one layer whose norm of queries is `first` and `second`.
Status config_of_glimmer(float first, float second) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(3, 9);
  bytes.text_value("general.architecture", "muse-glimmer");
  for (const auto& [key, value] :
       {std::pair("embedding_length", 8), std::pair("block_count", 1),
        std::pair("attention.head_count", 1), std::pair("feed_forward_length", 8),
        std::pair("context_length", 64), std::pair("attention.key_length", 2),
        std::pair("attention.sliding_window", 4)}) {
    bytes.u32_value(std::string("muse-glimmer.") + key, static_cast<uint32_t>(value));
  }
  bytes.f32_value("muse-glimmer.logit_scale", 0.5f);
  bytes.tensor("token_embd.weight", {8, 4}, 0, 0);
  bytes.tensor("blk.0.attn_q_norm.weight", {2}, 0, 128);
  bytes.tensor("blk.0.attn_k_norm.weight", {2}, 0, 160).align();
  for (int i = 0; i < 32; ++i) bytes.number(0.0f);
  bytes.number(first).number(second).align().number(1.0f).number(1.0f).align();
  const auto file = GgufFile::open(bytes.write(folder.file("m.gguf")));
  if (!file.ok()) return file.status();
  const auto config = gguf_model_config(*file.value());
  if (config.ok()) {
    EXPECT_EQ(config.value()["qk_scale_factor"], 1.5);
    EXPECT_EQ(config.value()["output_multiplier"], 0.5);
  }
  return config.status();
}

TEST(LaterArchitectures, GlimmersFactorIsOneNumber) {
  const Status same = config_of_glimmer(1.5f, 1.5f);
  EXPECT_TRUE(same.ok()) << same.message();
  const Status others = config_of_glimmer(1.5f, 1.25f);
  EXPECT_NE(others.message().find("must be of F32 and have one number"), std::string::npos)
      << others.message();
}

// All that the package gguf and llama.cpp name load or say why not, and nothing does both.
TEST(LaterArchitectures, EveryKnownOneLoadsOrSaysWhyNot) {
  std::set<std::string_view> loads;
  for (const GgufArchitecture& architecture : gguf_architectures()) loads.insert(architecture.name);
  EXPECT_EQ(why_not_read("llama"), "");
  EXPECT_EQ(why_not_read("no such architecture"), "");
  for (const char* name : kKnown) {
    const std::string why = why_not_read(name);
    EXPECT_NE(loads.contains(name), !why.empty()) << name;
    EXPECT_EQ(why.empty(), why.find("; ") == std::string::npos) << name;
  }
}

TEST(LaterArchitectures, TheSentenceNamesFileArchitectureAndReason) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("m.gguf");
  test::GgufBytes bytes(0, 1);
  bytes.text_value("general.architecture", "rwkv6").align().write(path);
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status status = gguf_architecture(*file.value()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), path +
                                  ": GGUF files of the architecture 'rwkv6' are not read: it "
                                  "needs RWKV's time mixing, which is not built; use a model "
                                  "of another family");
}

}  // namespace
}  // namespace foretoken
