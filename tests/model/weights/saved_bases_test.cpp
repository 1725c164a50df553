#include "model/weights/saved_bases.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "base/bfloat16.h"
#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr int64_t kBaseRows = 6, kBaseCols = 4;

TensorToWrite matrix(const std::string& name, FileDType dtype,
                     const std::function<float(int64_t)>& value, int64_t rows = kBaseRows) {
  return {name, dtype, {rows, kBaseCols}, [=](std::byte* to) {
            for (int64_t i = 0; i < rows * kBaseCols; ++i) {
              const float number = value(i);
              const uint16_t bits = bf16_from_float(number);
              const bool wide = dtype == FileDType::kF32;
              std::memcpy(to + (wide ? 4 : 2) * i, wide ? static_cast<const void*>(&number) : &bits,
                          wide ? 4 : 2);
            }
          }};
}

float usual(int64_t i) { return 0.013f * static_cast<float>(i) - 0.1f; }

class SavedBases : public testing::Test {
 protected:
  void SetUp() override { model_.write("config.json", "{}"); }
  void write_model(const std::vector<TensorToWrite>& tensors) {
    ASSERT_TRUE(write_safetensors(model_.file("model.safetensors"), tensors).ok());
  }
  // Which matrices beside an adapter of q_proj are not the model's.
  Result<std::vector<LoraBase>> changed(const TensorToWrite& saved, const std::string& more = "") {
    adapter_.write("adapter_config.json",
                   R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4)" + more + "}");
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj.";
    const std::vector<TensorToWrite> tensors = {
        matrix(module + "lora_A.weight", FileDType::kF32, usual, 2),
        {module + "lora_B.weight",
         FileDType::kF32,
         {3, 2},
         [](std::byte* to) { std::memset(to, 0, 24); }},
        saved};
    EXPECT_TRUE(write_safetensors(adapter_.file("adapter_model.safetensors"), tensors).ok());
    const auto adapter = read_peft_adapter(adapter_.path(), DType::kF32, 16);
    if (!adapter.ok()) return adapter.status();
    EXPECT_EQ(adapter.value().bases.size(), 1u);
    return changed_bases(adapter_.path(), adapter.value(), model_.path());
  }
  std::vector<std::string> names(const TensorToWrite& saved, const std::string& more = "") {
    std::vector<std::string> names;
    const std::vector<LoraBase> bases = changed(saved, more).value();
    for (const LoraBase& base : bases) names.push_back(base.name);
    return names;
  }
  test::ScratchFolder model_, adapter_;
};

constexpr const char* kSavedHead = "base_model.model.lm_head.base_layer.weight";
constexpr const char* kSavedTable = "base_model.model.model.embed_tokens.weight";

TEST_F(SavedBases, TheModelsOwnAreLeftAside) {
  write_model({matrix("lm_head.weight", FileDType::kBF16, usual),
               matrix("model.embed_tokens.weight", FileDType::kF32, usual)});
  for (const char* name : {kSavedHead, kSavedTable, "base_model.model.lm_head.weight",
                           "base_model.model.language_model.model.embed_tokens.weight"}) {
    for (const FileDType type : {FileDType::kF32, FileDType::kBF16}) {
      EXPECT_TRUE(names(matrix(name, type, usual)).empty()) << name;
    }
  }
}

float other(int64_t i) { return usual(i + 1); }
const std::string kTrainedTable = R"(, "modules_to_save": ["embed_tokens"])";

TEST_F(SavedBases, TheOutputMatrixMayBeTheEmbedding) {
  write_model({matrix("model.embed_tokens.weight", FileDType::kF32, usual)});
  EXPECT_TRUE(names(matrix(kSavedHead, FileDType::kF32, usual)).empty());
  EXPECT_EQ(names(matrix(kSavedHead, FileDType::kF32, other)),
            (std::vector<std::string>{"lm_head.weight"}));
}

// PEFT copies a module that is trained, and loads into the model's own what else it saved.
TEST_F(SavedBases, ATiedOutputMatrixFollowsTheEmbeddingWherePeftTiesThem) {
  write_model({matrix("model.embed_tokens.weight", FileDType::kF32, usual)});
  const std::vector<std::string> both = {"model.embed_tokens.weight", "lm_head.weight"},
                                 table = {"model.embed_tokens.weight"};
  EXPECT_EQ(names(matrix(kSavedTable, FileDType::kF32, other)), both);
  EXPECT_EQ(names(matrix(kSavedTable, FileDType::kF32, other), kTrainedTable), table);
  EXPECT_EQ(names(matrix(kSavedTable, FileDType::kF32, other),
                  kTrainedTable + R"(, "ensure_weight_tying": true)"),
            both);
  write_model({matrix("model.embed_tokens.weight", FileDType::kF32, usual),
               matrix("lm_head.weight", FileDType::kF32, usual)});
  EXPECT_EQ(names(matrix(kSavedTable, FileDType::kF32, other)), table);
}

TEST_F(SavedBases, TrainedAndResizedOnesAreChanged) {
  write_model({matrix("lm_head.weight", FileDType::kF32, usual)});
  const auto last = [](int64_t i) {
    return usual(i) * (i == kBaseRows * kBaseCols - 1 ? 1.01f : 1.0f);
  };
  const std::vector<std::string> head = {"lm_head.weight"};
  EXPECT_EQ(names(matrix(kSavedHead, FileDType::kF32, last)), head);
  EXPECT_EQ(names(matrix(kSavedHead, FileDType::kF32, usual, kBaseRows + 1)), head);
  const Status none = changed(matrix(kSavedTable, FileDType::kF32, usual)).status();
  EXPECT_EQ(none.code(), StatusCode::kUnsupported);
  EXPECT_NE(none.message().find("which the model has not"), std::string::npos) << none.message();
}

// The adapter's matrices whole: the model's with the rows of tokens 4 and 1.
TEST_F(SavedBases, RowsOfTokensStandInTheModelsMatrices) {
  const auto own = [](int64_t i) { return 100 + static_cast<float>(i); };
  const TensorToWrite rows =
      matrix("base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta",
             FileDType::kF32, own, 2);
  const TensorToWrite table = matrix("model.embed_tokens.weight", FileDType::kBF16, usual);
  const auto read = [&](const std::vector<TensorToWrite>& model, const std::string& ids) {
    write_model(model);
    adapter_.write("adapter_config.json",
                   R"({"peft_type": "LORA", "r": 2, "trainable_token_indices": )" + ids + "}");
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    const TensorToWrite a = matrix(module + "A.weight", FileDType::kF32, usual, 2);
    TensorToWrite b = matrix(module + "B.weight", FileDType::kF32, usual, 2);
    b.shape = {4, 2};
    EXPECT_TRUE(
        write_safetensors(adapter_.file("adapter_model.safetensors"), std::vector{a, b, rows})
            .ok());
    return read_peft_adapter(adapter_.path(), DType::kF32, 16).value();
  };
  LoraAdapter tied = read({table}, "[4, 1]");
  ASSERT_TRUE(read_token_rows(adapter_.path(), model_.path(), &tied).ok());
  ASSERT_EQ(tied.wholes.size(), 2u);
  EXPECT_EQ(tied.wholes[0].module, "model.embed_tokens");
  EXPECT_EQ(tied.wholes[1].module, "lm_head");
  EXPECT_EQ(tied.wholes[0].values, tied.wholes[1].values);
  std::vector<float> values(static_cast<size_t>(kBaseRows * kBaseCols));
  ASSERT_EQ(tied.wholes[0].values.size(), values.size() * sizeof(float));
  std::memcpy(values.data(), tied.wholes[0].values.data(), values.size() * sizeof(float));
  for (int64_t i = 0; i < kBaseRows * kBaseCols; ++i) {
    const int64_t row = i / kBaseCols, col = i % kBaseCols;
    const float want = row == 4   ? own(col)
                       : row == 1 ? own(kBaseCols + col)
                                  : bf16_to_float(bf16_from_float(usual(i)));
    EXPECT_EQ(values[static_cast<size_t>(i)], want) << i;
  }
  LoraAdapter apart = read({table, matrix("lm_head.weight", FileDType::kBF16, usual)}, "[4, 1]");
  ASSERT_TRUE(read_token_rows(adapter_.path(), model_.path(), &apart).ok());
  EXPECT_EQ(apart.wholes.size(), 1u);
  // The rows of an output matrix that is tied are the embedding's, and are saved with them alone.
  const std::string both = R"({"embed_tokens": [4, 1], "lm_head": [4, 1]})";
  LoraAdapter named = read({table}, both);
  ASSERT_TRUE(read_token_rows(adapter_.path(), model_.path(), &named).ok());
  ASSERT_EQ(named.wholes.size(), 2u);
  EXPECT_EQ(named.wholes[1].values, tied.wholes[1].values);
  LoraAdapter lacking = read({table, matrix("lm_head.weight", FileDType::kBF16, usual)}, both);
  const Status lacks = read_token_rows(adapter_.path(), model_.path(), &lacking);
  EXPECT_EQ(lacks.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(lacks.message().find("it lacks the rows of 'lm_head'"), std::string::npos)
      << lacks.message();
  // A matrix of the adapter's own, as PEFT saves it where the vocabulary was cut.
  LoraAdapter cut = read({table}, "[4, 1]");
  const size_t row_bytes = kBaseCols * sizeof(float);
  cut.wholes.push_back({"model.embed_tokens", 5, kBaseCols, std::vector<std::byte>(5 * row_bytes)});
  ASSERT_TRUE(read_token_rows(adapter_.path(), model_.path(), &cut).ok());
  ASSERT_EQ(cut.wholes.size(), 2u);
  EXPECT_EQ(std::memcmp(cut.wholes[0].values.data() + 4 * row_bytes,
                        tied.wholes[0].values.data() + 4 * row_bytes, row_bytes),
            0);
  EXPECT_EQ(cut.wholes[0].values[0], std::byte{0});
  // Of tokens behind the model's, none between them left out.
  LoraAdapter more = read({table}, "[7, 6]");
  ASSERT_TRUE(read_token_rows(adapter_.path(), model_.path(), &more).ok());
  ASSERT_EQ(more.wholes[0].rows, 8);
  ASSERT_EQ(more.wholes[0].values.size(), 8 * row_bytes);
  EXPECT_EQ(std::memcmp(more.wholes[0].values.data() + 7 * row_bytes,
                        tied.wholes[0].values.data() + 4 * row_bytes, row_bytes),
            0);
  for (const auto& [ids, part] : {std::pair{"[4, 7]", "token 7"}, std::pair{"[4]", "has shape"}}) {
    LoraAdapter wrong = read({table}, ids);
    const Status status = read_token_rows(adapter_.path(), model_.path(), &wrong);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
