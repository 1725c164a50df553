#include "gguf/hf_config.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/files/text_file.h"
#include "gguf/gguf_bytes.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<Json> config_of(const std::string& path) {
  const auto file = GgufFile::open(path);
  if (!file.ok()) return file.status();
  return gguf_model_config(*file.value());
}

Result<Json> config_of(const test::GgufBytes& bytes) {
  const test::ScratchFolder folder;
  return config_of(bytes.write(folder.file("model.gguf")));
}

TEST(HfConfig, SaysWhatTheModelsOwnConfigSays) {
  for (const std::string name : {"llama", "qwen2", "qwen3"}) {
    const auto made = config_of(test::golden_gguf(name + ".gguf"));
    ASSERT_TRUE(made.ok()) << made.status().message();
    const Json own =
        Json::parse(read_text_file(std::string(foretoken::kSourceFolder) +
                                   "/tests/golden/architectures/" + name + "/config.json")
                        .value());
    for (const char* field :
         {"architectures", "model_type", "hidden_size", "num_hidden_layers", "intermediate_size",
          "num_attention_heads", "num_key_value_heads", "max_position_embeddings", "rope_theta",
          "vocab_size", "tie_word_embeddings"}) {
      EXPECT_EQ(made.value()[field], own.value(field, made.value()[field])) << name << " " << field;
    }
    EXPECT_FLOAT_EQ(made.value()["rms_norm_eps"].get<float>(), own["rms_norm_eps"].get<float>());
    EXPECT_EQ(made.value()["torch_dtype"], "float32");
  }
}

// Its scaled positions are not rounded, which files do not say.
TEST(HfConfig, GptOss) {
  const auto made = config_of(test::golden_gguf("gpt-oss.gguf"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Json own = Json::parse(read_text_file(std::string(foretoken::kSourceFolder) +
                                              "/tests/golden/architectures/gpt_oss-mxfp4/"
                                              "config.json")
                                   .value());
  for (const char* field :
       {"architectures", "model_type", "num_local_experts", "num_experts_per_tok", "sliding_window",
        "attention_bias", "rope_theta", "head_dim"}) {
    EXPECT_EQ(made.value()[field], own[field]) << field;
  }
  EXPECT_EQ(made.value()["moe_intermediate_size"], own["intermediate_size"]);
  for (const char* field :
       {"rope_type", "factor", "truncate", "original_max_position_embeddings"}) {
    EXPECT_EQ(made.value()["rope_scaling"][field], own["rope_scaling"][field]) << field;
  }
}

test::GgufBytes model(uint64_t more_values, uint64_t num_tensors) {
  test::GgufBytes bytes(num_tensors, 6 + more_values);
  bytes.text_value("general.architecture", "llama").u32_value("llama.embedding_length", 64);
  bytes.u32_value("llama.attention.head_count", 4).u32_value("llama.block_count", 1);
  bytes.u32_value("llama.feed_forward_length", 64).u32_value("llama.context_length", 4096);
  return bytes;
}

// A file of another architecture.
test::GgufBytes model_of(const std::string& name, uint64_t more_values, uint32_t layers = 1) {
  test::GgufBytes bytes(1, 6 + more_values);
  bytes.text_value("general.architecture", name).u32_value(name + ".embedding_length", 64);
  bytes.u32_value(name + ".attention.head_count", 4).u32_value(name + ".block_count", layers);
  bytes.u32_value(name + ".feed_forward_length", 64).u32_value(name + ".context_length", 4096);
  return bytes;
}

Result<Json> try_with_embedding(test::GgufBytes& bytes) {
  bytes.tensor("token_embd.weight", {64, 2}, 0, 0).align();
  for (int i = 0; i < 128; ++i) bytes.number(0.0F);
  return config_of(bytes);
}

Json config_with_embedding(test::GgufBytes& bytes) {
  const auto config = try_with_embedding(bytes);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.value() : Json();
}

// Mixtral has Llama's name; without experts a file is Llama's.
TEST(HfConfig, Mixtures) {
  test::GgufBytes mixtral = model_of("llama", 2);
  mixtral.u32_value("llama.expert_count", 8);
  mixtral.u32_value("llama.expert_used_count", 2);
  Json config = config_with_embedding(mixtral);
  EXPECT_EQ(config["architectures"], Json({"MixtralForCausalLM"}));
  EXPECT_EQ(config["num_local_experts"], 8);
  EXPECT_EQ(config["num_experts_per_tok"], 2);
  test::GgufBytes llama = model_of("llama", 0);
  EXPECT_EQ(config_with_embedding(llama)["architectures"], Json({"LlamaForCausalLM"}));

  test::GgufBytes qwen = model_of("qwen3moe", 3);
  qwen.u32_value("qwen3moe.expert_count", 16);
  qwen.u32_value("qwen3moe.expert_used_count", 4);
  qwen.u32_value("qwen3moe.expert_feed_forward_length", 96);
  config = config_with_embedding(qwen);
  EXPECT_EQ(config["architectures"], Json({"Qwen3MoeForCausalLM"}));
  EXPECT_EQ(config["num_experts"], 16);
  EXPECT_EQ(config["moe_intermediate_size"], 96);
  EXPECT_EQ(config["norm_topk_prob"], true);

  test::GgufBytes cohere(1, 8);
  cohere.text_value("general.architecture", "cohere2moe");
  for (const auto& [key, value] :
       {std::pair("embedding_length", 64), std::pair("block_count", 1),
        std::pair("attention.head_count", 4), std::pair("context_length", 4096),
        std::pair("expert_count", 4), std::pair("expert_used_count", 2),
        std::pair("expert_feed_forward_length", 96)}) {
    cohere.u32_value(std::string("cohere2moe.") + key, static_cast<uint32_t>(value));
  }
  config = config_with_embedding(cohere);
  EXPECT_EQ(config["moe_intermediate_size"], 96);
  EXPECT_EQ(config["intermediate_size"], 96);
}

// Files since keys are absorbed have the sizes of heads in fields of their own.
TEST(HfConfig, Deepseek) {
  test::GgufBytes bytes = model_of("deepseek2", 19);
  const auto whole = [&](const char* key, uint32_t value) {
    bytes.u32_value(std::string("deepseek2.") + key, value);
  };
  whole("attention.q_lora_rank", 24);
  whole("attention.kv_lora_rank", 32);
  whole("attention.head_count_kv", 1);
  whole("attention.key_length", 48);
  whole("attention.value_length", 32);
  whole("attention.key_length_mla", 28);
  whole("attention.value_length_mla", 20);
  whole("rope.dimension_count", 16);
  whole("leading_dense_block_count", 1);
  whole("expert_count", 8);
  whole("expert_used_count", 2);
  whole("expert_shared_count", 1);
  whole("expert_feed_forward_length", 40);
  whole("expert_gating_func", 2);
  bytes.f32_value("deepseek2.expert_weights_scale", 2.5F);
  bytes.bool_value("deepseek2.expert_weights_norm", true);
  bytes.text_value("deepseek2.rope.scaling.type", "yarn");
  bytes.f32_value("deepseek2.rope.scaling.factor", 40);
  bytes.f32_value("deepseek2.rope.scaling.yarn_log_multiplier", 0.1F);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(config["architectures"], Json({"DeepseekV3ForCausalLM"}));
  for (const auto& [field, value] :
       {std::pair("q_lora_rank", 24), std::pair("kv_lora_rank", 32),
        std::pair("qk_nope_head_dim", 12), std::pair("qk_rope_head_dim", 16),
        std::pair("v_head_dim", 20), std::pair("first_k_dense_replace", 1),
        std::pair("n_routed_experts", 8), std::pair("num_experts_per_tok", 2),
        std::pair("moe_intermediate_size", 40), std::pair("n_group", 1)}) {
    EXPECT_EQ(config[field], value) << field;
  }
  EXPECT_EQ(config["norm_topk_prob"], true);
  EXPECT_EQ(config["topk_method"], "noaux_tc");
  EXPECT_FALSE(config.contains("partial_rotary_factor"));
  EXPECT_NEAR(config["rope_scaling"]["mscale_all_dim"].get<double>(), 1, 1e-6);
  EXPECT_EQ(config["rope_scaling"]["mscale"], config["rope_scaling"]["mscale_all_dim"]);
}

TEST(HfConfig, OlderFilesOfDeepseekV2) {
  test::GgufBytes bytes = model_of("deepseek2", 5);
  bytes.u32_value("deepseek2.attention.kv_lora_rank", 32);
  bytes.u32_value("deepseek2.attention.key_length", 28);
  bytes.u32_value("deepseek2.attention.value_length", 20);
  bytes.u32_value("deepseek2.rope.dimension_count", 16);
  bytes.u32_value("deepseek2.expert_count", 8);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(config["architectures"], Json({"DeepseekV2ForCausalLM"}));
  EXPECT_EQ(config["qk_nope_head_dim"], 12);
  EXPECT_EQ(config["v_head_dim"], 20);
  EXPECT_EQ(config["topk_method"], "greedy");
  EXPECT_EQ(config["first_k_dense_replace"], 0);
  EXPECT_FALSE(config.contains("q_lora_rank"));
}

TEST(HfConfig, Gemma) {
  test::GgufBytes bytes = model_of("gemma3", 4);
  bytes.u32_value("gemma3.attention.key_length", 32);
  bytes.u32_value("gemma3.attention.sliding_window", 512);
  bytes.f32_value("gemma3.final_logit_softcapping", 30);
  bytes.f32_value("gemma3.attn_logit_softcapping", 0);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(config["architectures"], Json({"Gemma3ForCausalLM"}));
  EXPECT_EQ(config["hidden_activation"], "gelu_pytorch_tanh");
  EXPECT_EQ(config["query_pre_attn_scalar"], 32);
  EXPECT_EQ(config["sliding_window"], 512);
  EXPECT_EQ(config["final_logit_softcapping"], 30);
  EXPECT_FALSE(config.contains("attn_logit_softcapping"));
  test::GgufBytes largest = model_of("gemma2", 1, 46);
  largest.u32_value("gemma2.attention.key_length", 32);
  EXPECT_EQ(config_with_embedding(largest)["query_pre_attn_scalar"], 16);
}

TEST(HfConfig, KeysOfAnArchitecture) {
  test::GgufBytes bytes = model_of("granite", 4);
  bytes.f32_value("granite.attention.scale", 0.0625F).f32_value("granite.logit_scale", 8);
  bytes.f32_value("granite.embedding_scale", 12).f32_value("granite.residual_scale", 0.25F);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(config["attention_multiplier"], 0.0625);
  EXPECT_EQ(config["logits_scaling"], 8);
  EXPECT_EQ(config["embedding_multiplier"], 12);
  EXPECT_EQ(config["residual_multiplier"], 0.25);
  EXPECT_FALSE(config.contains("query_pre_attn_scalar"));
  test::GgufBytes windows = model_of("olmo2", 1);
  windows.u32_value("olmo2.attention.sliding_window", 64);
  EXPECT_EQ(config_with_embedding(windows)["architectures"], Json({"Olmo3ForCausalLM"}));
}

TEST(HfConfig, ErrorsHaveOneKeyForAField) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes = model_of("mamba", 1);
  bytes.u32_value("mamba.ssm.inner_size", 64);
  bytes.tensor("token_embd.weight", {64, 2}, 0, 0).align();
  for (int i = 0; i < 128; ++i) bytes.number(0.0F);
  const auto file = GgufFile::open(bytes.write(folder.file("model.gguf")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status status = invalid_argument("'intermediate_size' and 'hidden_size' are too small");
  EXPECT_EQ(with_gguf_keys(*file.value(), status).message(),
            "'mamba.ssm.inner_size' ('intermediate_size') and 'mamba.embedding_length' "
            "('hidden_size') are too small");
}

TEST(HfConfig, HeadsOfRwkvAreSaid) {
  for (const uint32_t size : {0u, 64u}) {
    test::GgufBytes bytes = model_of("rwkv7", 1);
    bytes.u32_value("rwkv7.wkv.head_size", size);
    const auto config = try_with_embedding(bytes);
    EXPECT_EQ(config.ok(), size > 0) << config.status().message();
    if (size > 0) continue;
    EXPECT_NE(config.status().message().find("rwkv7.wkv.head_size"), std::string::npos);
  }
}

// Llama has none; a file that has one is of Mistral.
TEST(HfConfig, AWindowOfLlama) {
  test::GgufBytes bytes = model_of("llama", 1);
  bytes.u32_value("llama.attention.sliding_window", 4096);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(config["architectures"], Json({"MistralForCausalLM"}));
  EXPECT_EQ(config["sliding_window"], 4096);
}

TEST(HfConfig, ScalesOfMiniCpm) {
  test::GgufBytes bytes = model_of("minicpm", 1);
  bytes.f32_value("minicpm.logit_scale", 8);
  const Json old = config_with_embedding(bytes);
  EXPECT_EQ(old["logit_scale"], 0.125);
  EXPECT_EQ(old["scale_emb"], 12);
  EXPECT_EQ(old["dim_model_base"], 256);
  test::GgufBytes newer = model_of("minicpm", 1);
  newer.f32_value("minicpm.embedding_scale", 3);
  const Json own = config_with_embedding(newer);
  EXPECT_EQ(own["scale_emb"], 3);
  EXPECT_FALSE(own.contains("dim_model_base"));
}

TEST(HfConfig, PartsOfHeadsAndOtherScales) {
  test::GgufBytes bytes = model_of("phi3", 2);
  bytes.u32_value("phi3.rope.dimension_count", 12).f32_value("phi3.attention.scale", 0.5F);
  const Json config = config_with_embedding(bytes);
  EXPECT_EQ(static_cast<int>(16 * config["partial_rotary_factor"].get<double>()), 12);
  EXPECT_EQ(config["query_pre_attn_scalar"], 4);
  test::GgufBytes pairs = model_of("llama", 1);
  pairs.u32_value("llama.rope.dimension_count", 12).tensor("token_embd.weight", {64, 2}, 0, 0);
  pairs.align();
  for (int i = 0; i < 128; ++i) pairs.number(0.0F);
  EXPECT_NE(config_of(pairs).status().message().find("'llama.rope.dimension_count' is 12"),
            std::string::npos);
}

TEST(HfConfig, RotaryDivisorsBecomeLongrope) {
  test::GgufBytes bytes = model(0, 2);
  bytes.tensor("token_embd.weight", {64, 2}, 0, 32).tensor("rope_freqs.weight", {8}, 0, 0).align();
  for (int i = 1; i <= 8; ++i) bytes.number(static_cast<float>(i));
  for (int i = 0; i < 128; ++i) bytes.number(0.0F);
  const auto config = config_of(bytes);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Json& rope = config.value()["rope_scaling"];
  EXPECT_EQ(rope["rope_type"], "longrope");
  EXPECT_EQ(rope["long_factor"], Json({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}));
  EXPECT_EQ(rope["attention_factor"], 1.0);
  EXPECT_EQ(config.value()["head_dim"], 16);
  EXPECT_EQ(config.value()["vocab_size"], 2);
}

TEST(HfConfig, NamesWhatIsMissing) {
  test::GgufBytes bytes(0, 1);
  bytes.text_value("general.architecture", "llama").align();
  const auto config = config_of(bytes);
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.status().message().find("'llama.embedding_length' is missing"),
            std::string::npos);
  test::GgufBytes odd = model(1, 1);
  odd.text_value("llama.rope.scaling.type", "odd").tensor("token_embd.weight", {64, 2}, 0, 0);
  const auto unknown = config_of(odd.align());
  EXPECT_FALSE(unknown.ok());
}

TEST(HfConfig, EveryEndIsListedOnce) {
  test::GgufBytes bytes(0, 3);
  bytes.u32_value("tokenizer.ggml.eos_token_id", 5).u32_value("tokenizer.ggml.eot_token_id", 9);
  bytes.u32_value("tokenizer.ggml.eom_token_id", 5).align();
  const test::ScratchFolder folder;
  const auto file = GgufFile::open(bytes.write(folder.file("ends.gguf")));
  EXPECT_EQ(gguf_generation_config(*file.value()).value()["eos_token_id"], Json({5, 9}));
}

// Of numbers that no file of a model has.
TEST(HfConfig, LayersAreAsManyAsAModelMayHave) {
  const auto refused = [](uint32_t layers, uint32_t modules) {
    test::GgufBytes bytes = model_of("glm4moe", 1, layers);
    bytes.u32_value("glm4moe.nextn_predict_layers", modules);
    bytes.tensor("token_embd.weight", {64, 2}, 0, 0).align();
    for (int i = 0; i < 128; ++i) bytes.number(0.0F);
    return config_of(bytes).status().message();
  };
  test::GgufBytes fraction = model_of("mimo2", 1, 3);
  fraction.f32_value("mimo2.nextn_predict_layers", 1e30F);
  fraction.tensor("token_embd.weight", {64, 2}, 0, 0).align();
  for (int i = 0; i < 128; ++i) fraction.number(0.0F);
  EXPECT_NE(config_of(fraction).status().message().find("nextn_predict_layers"), std::string::npos);
  EXPECT_NE(refused(1 << 30, 1).find("'glm4moe.block_count' is 1073741824"), std::string::npos)
      << refused(1 << 30, 1);
  for (const uint32_t modules : {3u, 2'000'000'000u}) {
    const std::string why = refused(3, modules);
    EXPECT_NE(why.find("nextn_predict_layers' is " + std::to_string(modules) + " of 3 layers"),
              std::string::npos)
        << why;
  }
}

TEST(HfConfig, KeysThatAllFilesOfAnArchitectureHaveMayLack) {
  test::GgufBytes bytes = model_of("falcon-h1", 0);
  bytes.tensor("token_embd.weight", {64, 2}, 0, 0).align();
  for (int i = 0; i < 128; ++i) bytes.number(0.0F);
  const Status status = config_of(bytes).status();
  EXPECT_NE(status.message().find("keys of 'falcon-h1' are missing"), std::string::npos)
      << status.message();
}

// llama.cpp's own ggml-vocab-*.gguf.
TEST(HfConfig, AVocabularyAloneIsNoModel) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 6);
  bytes.text_value("general.architecture", "llama");
  for (const char* key : {"block_count", "context_length", "embedding_length",
                          "feed_forward_length", "attention.head_count"}) {
    bytes.u32_value(std::string("llama.") + key, 8);
  }
  const auto file = GgufFile::open(bytes.align().write(folder.file("vocab.gguf")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status status = gguf_model_config(*file.value()).status();
  EXPECT_NE(status.message().find("holds a vocabulary and no weights"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
