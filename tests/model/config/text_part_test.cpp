#include "model/config/text_part.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/config/families.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json text_of(const char* model_type) {
  return {{"model_type", model_type},   {"vocab_size", 64},
          {"hidden_size", 32},          {"intermediate_size", 48},
          {"num_hidden_layers", 2},     {"num_attention_heads", 4},
          {"num_key_value_heads", 2},   {"max_position_embeddings", 64},
          {"tie_word_embeddings", true}};
}

Json around(const char* architecture, const Json& more) {
  Json config = {{"architectures", {architecture}}, {"torch_dtype", "bfloat16"}};
  config.update(more);
  return config;
}

ModelConfig parsed(const Json& config) {
  auto read = parse_model_config(config, Json::object(), {}, "config.json");
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? std::move(read.value()) : ModelConfig();
}

TEST(TextPart, HaveNamesOfTheirOwnAndFamiliesThatLoad) {
  std::set<std::string> names;
  for (const WrappedFamily& family : wrapped_families()) {
    EXPECT_TRUE(names.insert(family.architecture).second) << family.architecture;
    EXPECT_EQ(find_architecture(family.architecture), nullptr) << family.architecture;
    EXPECT_EQ(find_refused_family(family.architecture), nullptr) << family.architecture;
    if (family.family == nullptr) continue;
    EXPECT_NE(find_architecture(family.family), nullptr) << family.architecture;
  }
}

TEST(TextPart, OtherFilesStayAsTheyAre) {
  const Json file = around("LlamaForCausalLM", text_of("llama"));
  EXPECT_EQ(file, text_part_of(file, "f").value());
}

TEST(TextPart, IsOfTheFamilyThatItsFieldsName) {
  Json text = text_of("qwen3");
  text["architectures"] = {"Qwen3ForCausalLM"};
  const ModelConfig config = parsed(around("InternVLChatModel", {{"llm_config", text}}));
  EXPECT_EQ(config.architecture, "Qwen3ForCausalLM");
  EXPECT_TRUE(config.is_text_part);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.dtype, DType::kBF16);
  const Json thinker = {{"thinker_config", {{"text_config", text_of("qwen2_5_omni_text")}}}};
  EXPECT_EQ(parsed(around("Qwen2_5OmniForConditionalGeneration", thinker)).architecture,
            "Qwen2ForCausalLM");
}

// Those that name their text part by themselves, or of which the class says it.
TEST(TextPart, MayHaveATypeOfItsOwn) {
  for (const auto& [around_it, type, family] :
       {std::tuple("GraniteDoclingForConditionalGeneration", "granite_docling_text",
                   "GraniteForCausalLM"),
        {"Granite4VisionForConditionalGeneration", "granite4_vision_text", "GraniteForCausalLM"},
        {"LocateAnythingForConditionalGeneration", "", "Qwen2ForCausalLM"},
        {"MultiModalityCausalLM", "llama", "LlamaForCausalLM"}}) {
    Json text = text_of(type);
    if (*type == '\0') text.erase("model_type");
    const ModelConfig config = parsed(around(around_it, {{"text_config", text}}));
    EXPECT_EQ(config.architecture, family) << around_it;
    EXPECT_TRUE(config.is_text_part) << around_it;
  }
}

// DeepSeek's first mixtures go by the name of its second ones.
TEST(TextPart, WithoutLatentsIsOfTheFirstDeepSeek) {
  Json text = text_of("deepseek_v2");
  text.update({{"architectures", {"DeepseekV2ForCausalLM"}},
               {"use_mla", false},
               {"kv_lora_rank", nullptr},
               {"n_routed_experts", 4},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 16},
               {"qk_rope_head_dim", 0},
               {"v_head_dim", 0},
               {"topk_method", "greedy"}});
  const ModelConfig config = parsed(around("DeepseekOCRForCausalLM", {{"language_config", text}}));
  EXPECT_EQ(config.architecture, "DeepseekForCausalLM");
  EXPECT_TRUE(config.is_text_part);
  EXPECT_EQ(config.experts.count, 4);
}

TEST(TextPart, MayLieBesideTheTowers) {
  EXPECT_EQ(parsed(around("DotsOCRForCausalLM", text_of("dots_ocr"))).architecture,
            "Qwen2ForCausalLM");
  EXPECT_EQ(parsed(around("LlavaQwenForCausalLM", text_of("llava"))).architecture,
            "Qwen2ForCausalLM");
  Json mini = text_of("minicpmv");
  mini["version"] = 4.5;
  EXPECT_EQ(parsed(around("MiniCPMV", mini)).architecture, "Qwen3ForCausalLM");
  mini["version"] = "2.5";
  EXPECT_EQ(parsed(around("MiniCPMV", mini)).architecture, "LlamaForCausalLM");
}

TEST(TextPart, OverridesOfItsObjectAreItsOwn) {
  const Json file = {{"is_text_part", true}};
  const Json inside = {{"rope_theta", 7}};
  EXPECT_EQ(Json({{"rope_theta", 7}, {"dtype", "float32"}}),
            text_overrides(file, {{"llm_config", inside}, {"dtype", "float32"}}));
  EXPECT_EQ(inside, text_overrides(file, {{"thinker_config", {{"text_config", inside}}}}));
  EXPECT_EQ(inside, text_overrides(file, inside));
  const Json other = {{"text_config", inside}};
  EXPECT_EQ(other, text_overrides(Json::object(), other));

  const std::string folder = std::string(kSourceFolder) + "/tests/golden/architectures/";
  for (const auto& [name, overrides] :
       {std::pair("internvl_chat", R"({"llm_config": {"max_position_embeddings": 77}})"),
        std::pair("glm_ocr", R"({"text_config": {"max_position_embeddings": 77}})")}) {
    const auto read = read_model_config(folder + name, {"auto", overrides});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value().max_position_embeddings, 77) << name;
  }
}

TEST(TextPart, ARefusalNamesTheModelAndTheTextPart) {
  const Json config = around("InternVLChatModel", {{"llm_config", text_of("odd")}});
  EXPECT_EQ(text_part_of(config, "f").status().message(),
            "f: 'InternVLChatModel' around a text part of model_type \"odd\" is not supported; "
            "foretoken inspect --families lists what loads");
}

}  // namespace
}  // namespace foretoken
