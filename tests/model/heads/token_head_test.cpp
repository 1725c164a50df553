#include "model/heads/token_head.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Floats = std::vector<float>;

// A folder of that class with a matrix [2, 2], which doubles the first number.
class TokenHeadTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& tensor) {
    static const Floats kMatrix = {2, 0, 0, 1};
    folder_.write("config.json", R"({"architectures": [")" + name + R"("], "model_type": "bert"})");
    const std::vector<TensorToWrite> tensors = {
        {tensor + ".weight", FileDType::kF32, {2, 2}, [](std::byte* out) {
           std::memcpy(out, kMatrix.data(), sizeof(float) * kMatrix.size());
         }}};
    ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
  }
  Result<std::optional<TokenHead>> load(int32_t hidden = 2) {
    return TokenHead::load(ModelFiles(folder_.path()), hidden);
  }

  test::ScratchFolder folder_;
};

TEST_F(TokenHeadTest, VectorsOfTokensAreMadeAsLongAsOne) {
  write("HF_ColBERT", "linear");
  const auto head = load();
  ASSERT_TRUE(head.ok() && head.value().has_value());
  EXPECT_FALSE(head.value()->gives_labels());
  EXPECT_EQ(head.value()->size(), 2);
  const Floats states = {1.5f, 4, 0, 3};
  EXPECT_EQ(head.value()->run(states, false), (Floats{3, 4, 0, 3}));
  EXPECT_EQ(head.value()->run(states, true), (Floats{0.6f, 0.8f, 0, 1}));
  EXPECT_FALSE(load(3).ok());
}

TEST_F(TokenHeadTest, LabelsStayAsTheyLeaveTheMatrix) {
  write("BertForTokenClassification", "classifier");
  const auto head = load();
  ASSERT_TRUE(head.ok() && head.value().has_value());
  EXPECT_TRUE(head.value()->gives_labels());
  EXPECT_EQ(head.value()->run(Floats{1, 2}, true), (Floats{2, 2}));
}

TEST_F(TokenHeadTest, OtherModelsHaveNone) {
  write("BertModel", "linear");
  const auto head = load();
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_FALSE(head.value().has_value());
}

}  // namespace
}  // namespace foretoken
