#include "convert/to_gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "convert/golden_models.h"
#include "model/config/config.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using test::ScratchFolder;

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  EXPECT_TRUE(
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw).ok());
  return values;
}

class ToGguf : public ::testing::Test {
 protected:
  Result<int64_t> convert(const char* type, bool replaces = false) {
    ConvertOptions options;
    options.output = output_;
    options.replaces = replaces;
    return to_gguf(folder_.path(), *find_gguf_recipe(type), options);
  }
  void change_config(const Json& changes) {
    Json config = Json::parse(read_text_file(folder_.file("config.json")).value());
    config.update(changes);
    folder_.write("config.json", config.dump());
  }
  const ScratchFolder folder_;
  const std::string output_ = folder_.file("x.gguf");
};

class ToGgufOf : public ToGguf, public ::testing::WithParamInterface<const char*> {};

TEST_P(ToGgufOf, IsTheSameModel) {
  test::copy_golden(GetParam(), folder_);
  if (std::string(GetParam()) == "mistral") change_config({{"sliding_window", nullptr}});
  const auto bytes = convert("f32");
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(bytes.value(), static_cast<int64_t>(std::filesystem::file_size(output_)));
  const auto before = Checkpoint::open(folder_.path());
  const auto after = Checkpoint::open(output_);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.value().tensors().size());
  for (const auto& [name, view] : before.value().tensors()) {
    const auto found = after.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->shape, view->shape) << name;
    EXPECT_EQ(floats_of(*found.value()), floats_of(*view)) << name;
  }
  const ModelConfig a = read_model_config(folder_.path(), {}).value();
  const ModelConfig b = read_model_config(output_, {}).value();
  EXPECT_EQ(a.num_layers, b.num_layers);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.max_context, b.max_context);
  EXPECT_EQ(a.rope.full.theta, b.rope.full.theta);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ToGgufOf,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3"));

TEST_F(ToGguf, TurnsOfLlama3BecomeATensor) {
  test::copy_golden("llama", folder_);
  change_config({{"rope_scaling",
                  {{"rope_type", "llama3"},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", 64}}}});
  ASSERT_TRUE(convert("bf16").ok());
  const ModelConfig config = read_model_config(output_, {}).value();
  EXPECT_EQ(config.rope.full.type, RopeType::kLongrope);
  ASSERT_EQ(config.rope.full.short_factor.size(), 8u);
  EXPECT_EQ(config.rope.full.short_factor[0], 1);
  EXPECT_EQ(config.rope.full.short_factor[7], 8);
}

TEST_F(ToGguf, QuantisedRowsStayNear) {
  test::copy_golden("llama", folder_);
  const Status odd = convert("q8_0").status();
  EXPECT_NE(odd.message().find("blk.0.ffn_down.weight has rows of 48"), std::string::npos)
      << odd.message();
  EXPECT_FALSE(std::filesystem::exists(output_));
  ASSERT_TRUE(convert("f16").ok());
  const auto before = Checkpoint::open(folder_.path());
  const auto after = Checkpoint::open(output_);
  for (const auto& [name, view] : before.value().tensors()) {
    const auto a = floats_of(*view), b = floats_of(*after.value().find(name).value());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], std::abs(a[i]) / 1000 + 1e-7F) << name;
  }
}

TEST_F(ToGguf, NamesWhatIsWrong) {
  test::copy_golden("gemma3", folder_);
  EXPECT_NE(convert("f32").status().message().find("Gemma3ForCausalLM are not written"),
            std::string::npos);
  std::filesystem::remove(folder_.file("config.json"));
  std::filesystem::remove(folder_.file("model.safetensors"));
  test::copy_golden("llama", folder_);
  ASSERT_TRUE(convert("f32").ok());
  EXPECT_NE(convert("f32").status().message().find("--force"), std::string::npos);
  EXPECT_TRUE(convert("bf16", true).ok());
}

TEST_F(ToGguf, ACancelledOneLeavesNothing) {
  test::copy_golden("llama", folder_);
  const std::atomic<bool> cancelled = true;
  ConvertOptions options;
  options.output = output_;
  options.cancelled = &cancelled;
  EXPECT_EQ(to_gguf(folder_.path(), *find_gguf_recipe("f32"), options).status().code(),
            StatusCode::kAborted);
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_FALSE(std::filesystem::exists(output_ + ".partial"));
}

}  // namespace
}  // namespace foretoken
