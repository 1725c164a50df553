#include "model/heads/dense_modules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Floats = std::vector<float>;

constexpr const char* kModules = R"([
  {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
  {"idx": 3, "path": "3_Normalize", "type": "sentence_transformers.models.Normalize"}])";

class DenseModules : public testing::Test {
 protected:
  Result<RowLayers> load(const char* modules, const char* config, int32_t hidden = 2) {
    std::filesystem::create_directory(folder_.file("2_Dense"));
    folder_.write("modules.json", modules);
    folder_.write("2_Dense/config.json", config);
    const TensorToWrite matrix{"linear.weight", FileDType::kF32, {1, 2}, [](std::byte* out) {
                                 const Floats values = {3, 1};
                                 std::memcpy(out, values.data(), values.size() * sizeof(float));
                               }};
    const std::vector<TensorToWrite> tensors = {matrix};
    FT_CHECK(write_safetensors(folder_.file("2_Dense/model.safetensors"), tensors).ok());
    return load_dense_modules(ModelFiles(folder_.path()), hidden);
  }

  const test::ScratchFolder folder_;
};

TEST_F(DenseModules, AreThoseBehindPooling) {
  const auto plain =
      load(kModules, R"({"activation_function": "torch.nn.modules.linear.Identity"})");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain.value().run(Floats{1, 2}), Floats{5});
  const auto tanh =
      load(kModules, R"({"activation_function": "torch.nn.modules.activation.Tanh"})");
  ASSERT_TRUE(tanh.ok()) << tanh.status().message();
  EXPECT_NEAR(tanh.value().run(Floats{0, 0.5F}).at(0), std::tanh(0.5), 1e-6);
}

TEST_F(DenseModules, OtherFoldersHaveNone) {
  const auto none = load_dense_modules(ModelFiles(folder_.path()), 2);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none.value().empty());
}

TEST_F(DenseModules, NamesWhatIsWrong) {
  const auto message = [&](const char* modules, const char* config, int32_t hidden = 2) {
    return load(modules, config, hidden).status().message();
  };
  EXPECT_NE(message(kModules, R"({"activation_function": "torch.nn.Softsign"})").find("Softsign"),
            std::string::npos);
  EXPECT_NE(message(kModules, "{}", 3).find("states of 2 numbers"), std::string::npos);
  EXPECT_NE(message("{}", "{}").find("must be a JSON list"), std::string::npos);
  EXPECT_NE(message(R"([{"path": "2_Dense", "type": "x.Dense"}])", "{}").find("before Pooling"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
