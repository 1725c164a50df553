#include "convert/to_gptq.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "convert/golden_models.h"
#include "model/config/config.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;

class ToGptq : public ::testing::Test {
 protected:
  Result<int64_t> convert(const GptqForm& form) {
    ConvertOptions options;
    options.output = output_;
    return to_gptq(source_, form, options);
  }
  void SetUp() override {
    fs::create_directory(source_);
    const fs::path golden = fs::path(foretoken::kSourceFolder) / "tests/golden/architectures/qwen2";
    for (const char* file : {"config.json", "model.safetensors"}) {
      fs::copy(golden / file, fs::path(source_) / file);
    }
    folder_.write("source/tokenizer.json", test::kSmallTokenizer);
  }
  const ScratchFolder folder_;
  const std::string source_ = folder_.file("source");
  const std::string output_ = folder_.file("quantised");
};

TEST_F(ToGptq, IsAModelThatLoads) {
  const auto bytes = convert({4, 16});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(bytes.value(),
            static_cast<int64_t>(fs::file_size(fs::path(output_) / "model.safetensors")));
  EXPECT_TRUE(read_model_config(output_, {}).ok());
  EXPECT_EQ(read_text_file(fs::path(output_) / "tokenizer.json").value(), test::kSmallTokenizer);
  EXPECT_FALSE(fs::exists(output_ + ".partial"));
  const auto before = Checkpoint::open(source_);
  const auto after = Checkpoint::open(output_);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.value().tensors().size());
  for (const auto& [name, view] : before.value().tensors()) {
    const TensorView& made = *after.value().find(name).value();
    EXPECT_EQ(made.shape, view->shape) << name;
    EXPECT_EQ(made.packed != nullptr, name.find("_proj.weight") != std::string::npos) << name;
  }
  EXPECT_NE(convert({4, 16}).status().message().find("exists already"), std::string::npos);
  ConvertOptions options;
  options.output = folder_.file("again");
  EXPECT_NE(to_gptq(output_, {4, 16}, options).status().message().find("quantised already"),
            std::string::npos);
}

TEST_F(ToGptq, LeavesNothingWhenItFails) {
  EXPECT_NE(convert({4, 32}).status().message().find("whole groups of 32"), std::string::npos);
  const std::atomic<bool> cancelled = true;
  ConvertOptions options;
  options.output = output_;
  options.cancelled = &cancelled;
  EXPECT_EQ(to_gptq(source_, {4, 16}, options).status().code(), StatusCode::kAborted);
  EXPECT_FALSE(fs::exists(output_));
  EXPECT_FALSE(fs::exists(output_ + ".partial"));
}

}  // namespace
}  // namespace foretoken
