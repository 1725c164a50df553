#include "gguf/encoder_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "gguf/gguf_bytes.h"
#include "gguf/hf_config.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

const GgufArchitecture& encoder(std::string_view name) {
  const auto all = encoder_gguf_architectures();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const auto& architecture) { return architecture.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(EncoderArchitectures, NamesOfTheirOwnAndBack) {
  for (const auto& [family, theirs, ours] :
       {std::tuple("bert", "position_embd.weight", "model.embed_positions.weight"),
        std::tuple("bert", "blk.1.attn_q.bias", "model.layers.1.self_attn.q_proj.bias"),
        std::tuple("bert", "blk.1.attn_output_norm.weight",
                   "model.layers.1.self_attn_layer_norm.weight"),
        std::tuple("bert", "cls.output.weight", "classifier.out_proj.weight"),
        std::tuple("nomic-bert", "blk.0.attn_qkv.weight",
                   "model.layers.0.self_attn.qkv_proj.weight"),
        std::tuple("nomic-bert", "blk.0.layer_output_norm.bias",
                   "model.layers.0.final_layer_norm.bias"),
        std::tuple("nomic-bert-moe", "blk.1.ffn_up_exps.weight",
                   "model.layers.1.mlp.experts.mlp.w1.weight"),
        std::tuple("modern-bert", "blk.2.ffn_up.weight", "model.layers.2.mlp.gate_up_proj.weight"),
        std::tuple("modern-bert", "cls.norm.weight", "head.norm.weight"),
        std::tuple("jina-bert-v2", "blk.0.layer_output_norm.bias",
                   "model.layers.0.final_layer_norm.bias"),
        std::tuple("gemma-embedding", "blk.0.ffn_norm.weight",
                   "model.layers.0.pre_feedforward_layernorm.weight"),
        std::tuple("eurobert", "blk.0.attn_norm.weight",
                   "model.layers.0.input_layernorm.weight")}) {
    EXPECT_EQ(hf_tensor_name(encoder(family), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(encoder(family), ours), theirs);
  }
}

nlohmann::json config_of_encoder(const std::string& name) {
  const auto file = GgufFile::open(test::golden_gguf("encoders/" + name));
  EXPECT_TRUE(file.ok()) << file.status().message();
  return gguf_model_config(*file.value()).value();
}

TEST(EncoderArchitectures, ConfigsOfConvertedFiles) {
  const nlohmann::json bert = config_of_encoder("bert.gguf");
  EXPECT_EQ(bert["architectures"][0], "BertModel");
  EXPECT_EQ(bert["is_causal"], false);
  EXPECT_EQ(bert["type_vocab_size"], 2);
  const nlohmann::json judge = config_of_encoder("xlm_roberta_judge.gguf");
  EXPECT_EQ(judge["architectures"][0], "BertForSequenceClassification");
  EXPECT_EQ(judge["type_vocab_size"], 1);
  EXPECT_EQ(judge["id2label"]["0"], "LABEL_0");
  EXPECT_EQ(config_of_encoder("nomic_bert.gguf")["rope_theta"], 1000);
  const nlohmann::json modern = config_of_encoder("modern_bert_judge.gguf");
  EXPECT_EQ(modern["architectures"][0], "ModernBertForSequenceClassification");
  EXPECT_EQ(modern["local_attention"], 8);
  EXPECT_EQ(modern["global_attn_every_n_layers"], 3);
  EXPECT_EQ(modern["rope_local_base_freq"], 10000);
}

// The converter leaves the pooler of BERT out.
TEST(EncoderArchitectures, JudgesWithoutAPartAreRefused) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(3, 8);
  bytes.text_value("general.architecture", "bert").text_value("tokenizer.ggml.model", "bert");
  for (const auto& [key, value] :
       {std::pair("embedding_length", 8), std::pair("block_count", 1),
        std::pair("attention.head_count", 1), std::pair("feed_forward_length", 8),
        std::pair("context_length", 4)}) {
    bytes.u32_value(std::string("bert.") + key, static_cast<uint32_t>(value));
  }
  bytes.bool_value("bert.attention.causal", false);
  bytes.tensor("token_embd.weight", {8, 4}, 0, 0).tensor("token_types.weight", {8, 2}, 0, 128);
  bytes.tensor("cls.output.weight", {8, 1}, 0, 192).align();
  for (int i = 0; i < 56; ++i) bytes.number(0.0f);
  const auto file = GgufFile::open(bytes.align().write(folder.file("m.gguf")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto config = gguf_model_config(*file.value());
  EXPECT_NE(config.status().message().find("the pooler"), std::string::npos)
      << config.status().message();
}

}  // namespace
}  // namespace foretoken
