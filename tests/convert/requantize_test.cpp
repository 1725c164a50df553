#include "convert/requantize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convert/to_gguf.h"
#include "gguf/gguf_bytes.h"
#include "gguf/model_texts.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class Requantize : public ::testing::Test {
 protected:
  Result<int64_t> requantize(const std::string& path, const char* recipe) {
    const auto file = GgufFile::open(path);
    if (!file.ok()) return file.status();
    ConvertOptions options;
    options.output = output_;
    options.replaces = true;
    return requantize_gguf(*file.value(), *find_gguf_recipe(recipe), options);
  }
  // An embedding [2, 64] of a file of an architecture that is not loaded, and vectors beside it.
  std::string write_odd() {
    test::GgufBytes bytes(3, 3);
    bytes.text_value("general.architecture", "odd").u32_value("general.file_type", 1);
    bytes.key("odd.many", 9).number(uint32_t{2}).number(uint64_t{1}).number(uint16_t{7});
    bytes.tensor("token_embd.weight", {64, 2}, 0, 0).tensor("vector.weight", {4}, 1, 512);
    bytes.tensor("numbers", {2, 2}, 26, 544).align();
    for (int i = 0; i < 128; ++i) bytes.number(std::sin(static_cast<float>(i)));
    for (int i = 0; i < 4; ++i) bytes.number(uint16_t{0x3c00});
    bytes.align();
    for (int i = 0; i < 4; ++i) bytes.number(int32_t{i});
    return bytes.align().write(folder_.file("odd.gguf"));
  }

  const test::ScratchFolder folder_;
  const std::string output_ = folder_.file("x.gguf");
};

TEST_F(Requantize, MatricesOfAnyArchitecture) {
  const std::string path = write_odd();
  const auto bytes = requantize(path, "q8_0");
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = GgufFile::open(output_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto& tensors = file.value()->tensors();
  EXPECT_EQ(tensors.at("token_embd.weight").type->name, "Q8_0");
  EXPECT_EQ(tensors.at("vector.weight").type->name, "F16");
  EXPECT_EQ(tensors.at("numbers").type->name, "I32");
  EXPECT_EQ(file.value()->integer("general.file_type").value(), 7);
  EXPECT_EQ(file.value()->text("general.architecture").value(), "odd");
  const auto before = GgufFile::open(path);
  const GgufBytes raw = file.value()->raw_metadata().at("odd.many");
  const GgufBytes old = before.value()->raw_metadata().at("odd.many");
  EXPECT_TRUE(std::equal(raw.begin(), raw.end(), old.begin(), old.end()));
  const TensorView view = gguf_tensor_view(tensors.at("token_embd.weight"));
  std::vector<float> floats(128);
  std::vector<std::byte> raw_blocks;
  ASSERT_TRUE(read_elements(view, 0, 128, DType::kF32, floats.data(), raw_blocks).ok());
  for (int i = 0; i < 128; ++i) {
    EXPECT_NEAR(floats[static_cast<size_t>(i)], std::sin(static_cast<float>(i)), 0.005F);
  }
}

TEST_F(Requantize, TheModelStaysTheSame) {
  const std::string path = test::golden_gguf("llama.gguf");
  ASSERT_TRUE(requantize(path, "f32").ok());
  for (const char* name : {"config.json", "generation_config.json"}) {
    EXPECT_EQ(read_model_text(ModelFiles(path), name).value(),
              read_model_text(ModelFiles(output_), name).value());
  }
  const auto before = Checkpoint::open(ModelFiles(path));
  const auto after = Checkpoint::open(ModelFiles(output_));
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(before.value().tensors().size(), after.value().tensors().size());
}

TEST_F(Requantize, NamesWhatIsWrong) {
  EXPECT_NE(requantize(test::golden_gguf("llama.gguf"), "q8_0").status().message().find("rows of"),
            std::string::npos);
  test::GgufBytes bytes(1, 0);
  bytes.tensor("a.weight", {2, 2}, 26, 0).align();
  for (int i = 0; i < 4; ++i) bytes.number(int32_t{i});
  const std::string path = bytes.align().write(folder_.file("integers.gguf"));
  const Status status = requantize(path, "f16").status();
  EXPECT_NE(status.message().find("'a.weight' has dtype I32"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
