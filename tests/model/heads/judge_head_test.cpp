#include "model/heads/judge_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TensorToWrite matrix_of(const char* name, std::vector<int64_t> shape, std::vector<float> values) {
  return {name, FileDType::kF32, std::move(shape), [values = std::move(values)](std::byte* out) {
            std::memcpy(out, values.data(), values.size() * sizeof(float));
          }};
}

Result<std::optional<JudgeHead>> head_of(const char* config,
                                         const std::vector<TensorToWrite>& tensors) {
  const test::ScratchFolder folder;
  folder.write("config.json", config);
  FT_CHECK(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  return JudgeHead::load(ModelFiles(folder.path()), 2);
}

TEST(JudgeHead, OneMatrix) {
  const auto head = head_of(R"({"architectures": ["Qwen3ForSequenceClassification"]})",
                            {matrix_of("score.weight", {1, 2}, {2, -1})});
  ASSERT_TRUE(head.ok() && head.value());
  EXPECT_EQ(head.value()->num_labels(), 1);
  EXPECT_EQ(head.value()->judge(std::vector<float>{3, 4}), std::vector<float>{2});
}

TEST(JudgeHead, RewardsOfInternLm) {
  const auto head = head_of(R"({"architectures": ["InternLM2ForRewardModel"]})",
                            {matrix_of("v_head.weight", {1, 2}, {1, -2})});
  ASSERT_TRUE(head.ok() && head.value());
  EXPECT_EQ(head.value()->judge(std::vector<float>{3, 1}), std::vector<float>{1});
}

TEST(JudgeHead, TwoMatricesWithTanhBetween) {
  const auto head = head_of(R"({"architectures": ["XLMRobertaForSequenceClassification"]})",
                            {matrix_of("classifier.dense.weight", {2, 2}, {1, 0, 0, 1}),
                             matrix_of("classifier.dense.bias", {2}, {0, 1}),
                             matrix_of("classifier.out_proj.weight", {1, 2}, {1, 2}),
                             matrix_of("classifier.out_proj.bias", {1}, {0.5F})});
  ASSERT_TRUE(head.ok() && head.value());
  const std::vector<float> judged = head.value()->judge(std::vector<float>{0.25F, -1});
  EXPECT_NEAR(judged.at(0), std::tanh(0.25) + 0.5, 1e-6);
}

TEST(JudgeHead, OtherClassesHaveNone) {
  const auto head = head_of(R"({"architectures": ["Qwen3ForCausalLM"]})",
                            {matrix_of("score.weight", {1, 2}, {2, -1})});
  EXPECT_TRUE(head.ok() && !head.value());
}

TEST(JudgeHead, NamesWhatIsMissing) {
  const auto head = head_of(R"({"architectures": ["Qwen3ForSequenceClassification"]})",
                            {matrix_of("model.norm.weight", {2}, {1, 1})});
  EXPECT_EQ(head.status().code(), StatusCode::kNotFound);
  EXPECT_NE(head.status().message().find("score.weight"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
