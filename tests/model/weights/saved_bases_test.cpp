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
  // An adapter of q_proj beside the matrix.
  Status check(const TensorToWrite& saved) {
    adapter_.write("adapter_config.json", R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})");
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
    return check_saved_bases(adapter_.path(), adapter.value(), model_.path());
  }
  static void expect_refusal(const Status& status, const std::string& part) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find("modules_to_save"), std::string::npos) << status.message();
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
      const Status status = check(matrix(name, type, usual));
      EXPECT_TRUE(status.ok()) << name << ": " << status.message();
    }
  }
}

TEST_F(SavedBases, TheOutputMatrixMayBeTheEmbedding) {
  write_model({matrix("model.embed_tokens.weight", FileDType::kF32, usual)});
  EXPECT_TRUE(check(matrix(kSavedHead, FileDType::kF32, usual)).ok());
  expect_refusal(check(matrix(kSavedHead, FileDType::kF32, [](int64_t i) { return usual(i + 1); })),
                 "whose values are not the model's");
}

TEST_F(SavedBases, TrainedAndResizedOnesAreRefusedWithTheRemedy) {
  write_model({matrix("lm_head.weight", FileDType::kF32, usual)});
  const auto last = [](int64_t i) {
    return usual(i) * (i == kBaseRows * kBaseCols - 1 ? 1.01f : 1.0f);
  };
  const Status trained = check(matrix(kSavedHead, FileDType::kF32, last));
  expect_refusal(trained, "whose values are not the model's; merge the adapter into its model");
  expect_refusal(check(matrix(kSavedHead, FileDType::kF32, usual, kBaseRows + 1)),
                 "whose shape [7, 4] is not the model's [6, 4]");
  expect_refusal(check(matrix(kSavedTable, FileDType::kF32, usual)), "which the model has not");
}

}  // namespace
}  // namespace foretoken
