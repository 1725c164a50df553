#include "gguf/meta_params.h"

#include <gtest/gtest.h>

#include "base/files/text_file.h"
#include "gguf/model_texts.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of Llama 3.2 1B.
const Json kSmallParams = {{"dim", 2048},
                           {"n_layers", 16},
                           {"n_heads", 32},
                           {"n_kv_heads", 8},
                           {"vocab_size", 128256},
                           {"ffn_dim_multiplier", 1.5},
                           {"multiple_of", 256},
                           {"norm_eps", 1e-05},
                           {"rope_theta", 500000.0},
                           {"use_scaled_rope", true}};
// Of Llama 2 7B.
const Json kSecondParams = {{"dim", 4096},    {"multiple_of", 256}, {"n_heads", 32},
                            {"n_layers", 32}, {"norm_eps", 1e-05},  {"vocab_size", 32000}};

Result<Json> meta_config_of(const Json& params, const Json& more = Json::object()) {
  const test::ScratchFolder folder;
  Json all = params;
  all.update(more);
  folder.write("params.json", all.dump());
  return meta_config(folder.path());
}

TEST(MetaParams, AreAConfigOfTransformers) {
  const Json config = meta_config_of(kSmallParams).value();
  EXPECT_EQ(config["architectures"][0], "LlamaForCausalLM");
  EXPECT_EQ(config["intermediate_size"], 8192);
  EXPECT_EQ(config["head_dim"], 64);
  EXPECT_EQ(config["num_key_value_heads"], 8);
  EXPECT_EQ(config["max_position_embeddings"], 131072);
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(config["rope_scaling"]["factor"], 32);
  EXPECT_EQ(config["bos_token_id"], 128000);
  EXPECT_EQ(config["eos_token_id"], Json({128001, 128008, 128009}));
}

// 70B: 28,672 columns.
TEST(MetaParams, OtherSizesAndGenerations) {
  const Json large =
      meta_config_of(
          kSmallParams,
          {{"dim", 8192}, {"n_heads", 64}, {"ffn_dim_multiplier", 1.3}, {"multiple_of", 4096}})
          .value();
  EXPECT_EQ(large["intermediate_size"], 28672);
  EXPECT_EQ(large["rope_scaling"]["factor"], 8);
  const Json third = meta_config_of(kSmallParams, {{"use_scaled_rope", false}}).value();
  EXPECT_EQ(third["max_position_embeddings"], 8192);
  EXPECT_FALSE(third.contains("rope_scaling"));
  const Json second = meta_config_of(kSecondParams).value();
  EXPECT_EQ(second["intermediate_size"], 11008);
  EXPECT_EQ(second["num_key_value_heads"], 32);
  EXPECT_EQ(second["max_position_embeddings"], 4096);
  EXPECT_EQ(second["rope_theta"], 10000);
  EXPECT_EQ(second["eos_token_id"], 2);
  EXPECT_EQ(meta_config_of(kSecondParams, {{"norm_eps", 1e-6}}).value()["max_position_embeddings"],
            2048);
}

TEST(MetaParams, TheTokenizerSaysHowManyTokensThereAre) {
  const test::ScratchFolder folder;
  Json params = kSecondParams;
  params["vocab_size"] = -1;
  folder.write("params.json", params.dump());
  const Status none = meta_config(folder.path()).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_NE(none.message().find("tokenizer.model"), std::string::npos) << none.message();
  // Two pieces: <unk> and <s>.
  folder.write("tokenizer.model", std::string("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16) +
                                      std::string("\x0a\x0c\x0a\x03<s>\x15\0\0\0\0\x18\x03", 14));
  EXPECT_EQ(meta_config(folder.path()).value()["vocab_size"], 2);
}

TEST(MetaParams, WhatIsNotReadIsNamed) {
  const std::pair<const char*, Json> cases[] = {{"moe_args", {{"moe_args", {{"num_experts", 16}}}}},
                                                {"vision_chunk_size", {{"vision_chunk_size", 560}}},
                                                {"quantization_args", {{"quantization_args", 1}}}};
  for (const auto& [field, more] : cases) {
    const Status status = meta_config_of(kSmallParams, more).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << field;
    EXPECT_NE(status.message().find("'" + std::string(field) + "' is not read in Meta's own"),
              std::string::npos)
        << status.message();
  }
  EXPECT_FALSE(meta_config_of(kSmallParams, {{"dim", "x"}}).ok());
  EXPECT_FALSE(meta_config_of(kSmallParams, {{"n_heads", 0}}).ok());
  EXPECT_FALSE(meta_config_of(kSmallParams, {{"rope_theta", -1}}).ok());
  EXPECT_FALSE(meta_config_of(kSmallParams, {{"ffn_dim_multiplier", 1e300}}).ok());
  EXPECT_FALSE(meta_config_of(kSmallParams, {{"dim", 16}}).ok());
  const Status early = meta_config_of(kSecondParams, {{"head_dim", 128}}).status();
  EXPECT_NE(early.message().find("'head_dim' is of Mistral's own layout"), std::string::npos)
      << early.message();
}

TEST(MetaParams, AFolderOfTheLayoutHasNoConfig) {
  const std::string whole = std::string(kSourceFolder) + "/tests/golden/meta/whole";
  EXPECT_TRUE(has_meta_params(whole));
  EXPECT_TRUE(has_model_text(whole, "config.json"));
  const auto text = read_model_text(whole, "config.json").value();
  EXPECT_EQ(Json::parse(text.value())["hidden_size"], 64);
  EXPECT_FALSE(has_meta_params(std::string(kSourceFolder) + "/tests/golden/meta/model"));
  const test::ScratchFolder folder;
  folder.write("params.json", "{}");
  EXPECT_FALSE(has_meta_params(folder.path()));
  folder.write("consolidated.00.pth", "x");
  EXPECT_TRUE(has_meta_params(folder.path()));
  const test::ScratchFolder both;
  for (const char* const name :
       {"params.json", "consolidated.00.pth", "consolidated.safetensors"}) {
    both.write(name, "{}");
  }
  EXPECT_FALSE(has_meta_params(both.path()));
  folder.write("config.json", "{}");
  EXPECT_FALSE(has_meta_params(folder.path()));
}

}  // namespace
}  // namespace foretoken
