#include "model/config/settled_fields.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// A matrix of 3 x 2 whose last element is given.
TensorToWrite matrix_ending_with(const std::string& name, float last) {
  return {name, FileDType::kF32, {3, 2}, [last](std::byte* out) {
            const float values[] = {1, 2, 3, 4, 5, last};
            std::memcpy(out, values, sizeof(values));
          }};
}

Json settled(const std::vector<TensorToWrite>& tensors, const Json& fields) {
  const test::ScratchFolder folder;
  FT_CHECK(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  return with_settled_head(ModelFiles(folder.path()), fields);
}

TEST(SettledHead, AnotherMatrixInTheFilesIsTheHead) {
  const TensorToWrite table = matrix_ending_with("model.embed_tokens.weight", 6);
  const Json tied = {{"tie_word_embeddings", true}}, apart = {{"tie_word_embeddings", false}};
  EXPECT_EQ(settled({table, matrix_ending_with("lm_head.weight", 7)}, tied), apart);
  EXPECT_EQ(settled({table, matrix_ending_with("lm_head.weight", 7)}, Json::object()), apart);
  EXPECT_EQ(settled({table, matrix_ending_with("lm_head.weight", 6)}, tied), tied);
  EXPECT_EQ(settled({table}, tied), tied);
  EXPECT_EQ(settled({table, matrix_ending_with("lm_head.weight", 7)}, apart), apart);
}

TEST(SettledHead, TextsOfModelsWithVisionToo) {
  const std::vector<TensorToWrite> tensors = {
      matrix_ending_with("model.language_model.embed_tokens.weight", 6),
      matrix_ending_with("lm_head.weight", 7)};
  const Json tied = {{"text_config", {{"tie_word_embeddings", true}}}};
  EXPECT_EQ(settled(tensors, tied)["text_config"]["tie_word_embeddings"], false);
}

TEST(SettledHead, FoldersWithoutWeightsAreLeftAlone) {
  const test::ScratchFolder folder;
  const Json tied = {{"tie_word_embeddings", true}};
  EXPECT_EQ(with_settled_head(ModelFiles(folder.path()), tied), tied);
}

Json whole(const std::vector<TensorToWrite>& tensors, const std::string& name) {
  const test::ScratchFolder folder;
  FT_CHECK(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  const Json fields = {{"architectures", {name}}, {"tie_word_embeddings", false}};
  return with_whole_class(ModelFiles(folder.path()), fields);
}

TEST(WholeClass, BodiesOfModelsThatEmbed) {
  const TensorToWrite table = matrix_ending_with("embed_tokens.weight", 6);
  const TensorToWrite head = matrix_ending_with("lm_head.weight", 7);
  const Json tied = {{"architectures", {"Qwen2ForCausalLM"}}, {"tie_word_embeddings", true}};
  const Json apart = {{"architectures", {"Qwen2ForCausalLM"}}, {"tie_word_embeddings", false}};
  EXPECT_EQ(whole({table}, "Qwen2Model"), tied);
  EXPECT_EQ(whole({table, head}, "Qwen2Model"), apart);
  EXPECT_EQ(whole({table}, "Qwen2ForCausalLM"), apart);
  EXPECT_EQ(whole({table}, "Qwen2ForSequenceClassification"), tied);
  EXPECT_EQ(whole({table}, "Qwen2ForRewardModel"), tied);
  EXPECT_EQ(whole({table}, "Gemma3TextModel")["architectures"][0], "Gemma3ForCausalLM");
  for (const auto& [judge, own] :
       {std::pair("GPT2ForSequenceClassification", "GPT2LMHeadModel"),
        std::pair("Gemma3TextForSequenceClassification", "Gemma3ForCausalLM"),
        std::pair("JambaForSequenceClassification", "JambaForCausalLM"),
        std::pair("InternLM2ForRewardModel", "InternLM2ForCausalLM"),
        std::pair("Qwen3VLForSequenceClassification", "Qwen3VLForConditionalGeneration")}) {
    EXPECT_EQ(whole({table}, judge)["architectures"][0], own);
  }
  for (const char* name : {"ChatGLMModel", "AquilaModel", "BertModel", "Model", ""}) {
    EXPECT_EQ(whole({table}, name)["architectures"][0], name);
  }
}

// Copies are the same model: the weights are opened, and a warning is given, for one of them.
TEST(SettledFields, TheWeightsAreAskedOnce) {
  struct Case {
    Json (*settle)(const ModelFiles&, Json);
    Json fields, settled;
    std::vector<TensorToWrite> tensors;
  };
  const TensorToWrite table = matrix_ending_with("model.embed_tokens.weight", 6);
  const Json granite = {{"architectures", {"GraniteMoeHybridForCausalLM"}}};
  Json of_mlx = granite;
  of_mlx["usual_mlp"] = true;
  const Case cases[] = {
      {with_settled_head,
       {{"tie_word_embeddings", true}},
       {{"tie_word_embeddings", false}},
       {table, matrix_ending_with("lm_head.weight", 7)}},
      {with_whole_class,
       {{"architectures", {"Qwen2Model"}}},
       {{"architectures", {"Qwen2ForCausalLM"}}, {"tie_word_embeddings", true}},
       {table}},
      {with_mlx_weights,
       granite,
       of_mlx,
       {table, matrix_ending_with("model.layers.0.mlp.gate_proj.weight", 7)}},
  };
  for (const Case& one : cases) {
    const test::ScratchFolder folder;
    const std::string file = folder.file("model.safetensors");
    FT_CHECK(write_safetensors(file, one.tensors).ok());
    const ModelFiles model(folder.path());
    EXPECT_EQ(one.settle(model, one.fields), one.settled);
    std::filesystem::remove(file);
    const ModelFiles copy = model;
    EXPECT_EQ(one.settle(copy, one.fields), one.settled);
    EXPECT_NE(one.settle(ModelFiles(folder.path()), one.fields), one.settled)
        << "another one looks itself";
  }
}

TEST(SettledFields, ClassesOfGgufFilesSayThemselvesWhatTheyTie) {
  const nlohmann::json judge = {{"architectures", {"Qwen3ForSequenceClassification"}},
                                {"tie_word_embeddings", true}};
  const nlohmann::json whole = {{"architectures", {"Qwen3ForCausalLM"}},
                                {"tie_word_embeddings", true}};
  EXPECT_EQ(whole, with_whole_class(ModelFiles("reranker.gguf"), judge));
  const nlohmann::json body = {{"architectures", {"Gemma3TextModel"}}};
  EXPECT_EQ("Gemma3ForCausalLM",
            with_whole_class(ModelFiles("embed.gguf"), body)["architectures"][0]);
}

}  // namespace
}  // namespace foretoken
