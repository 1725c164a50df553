#include "convert/quantized_folder.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/files/text_file.h"
#include "convert/golden_models.h"
#include "convert/to_fp8.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

TEST(QuantizedFolder, OtherFilesAreCopiedAndTheConfigurationSaysHow) {
  const test::ScratchFolder source, out;
  test::copy_golden("llama", source);
  source.write("model.safetensors.index.json", "{}");
  ConvertOptions options;
  options.output = out.file("made");
  const auto bytes = to_fp8(source.path(), Fp8Form::kRows, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(bytes.value(),
            static_cast<int64_t>(fs::file_size(fs::path(options.output) / "model.safetensors")));
  EXPECT_EQ(read_text_file(fs::path(options.output) / "tokenizer.json").value(),
            test::kSmallTokenizer);
  EXPECT_FALSE(fs::exists(fs::path(options.output) / "model.safetensors.index.json"));
  const auto config = read_json_file((fs::path(options.output) / "config.json").string()).value();
  EXPECT_EQ(config["quantization_config"]["format"], "float-quantized");
  EXPECT_NE(
      to_fp8(source.path(), Fp8Form::kRows, options).status().message().find("exists already"),
      std::string::npos);
}

TEST(QuantizedFolder, RoutersStayAndExpertsOfTheirOwnAreRounded) {
  const test::ScratchFolder source, out;
  test::copy_golden("mixtral", source);
  ConvertOptions options;
  options.output = out.file("made");
  const auto bytes = to_fp8(source.path(), Fp8Form::kRows, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto made = Checkpoint::open(options.output);
  ASSERT_TRUE(made.ok()) << made.status().message();
  int routers = 0, experts = 0;
  for (const auto& [name, view] : made.value().tensors()) {
    if (name.ends_with(".gate.weight")) {
      ++routers;
      EXPECT_EQ(view->scaled, nullptr) << name;
    }
    if (name.find(".experts.") != std::string::npos) {
      ++experts;
      EXPECT_NE(view->scaled, nullptr) << name;
    }
  }
  EXPECT_GT(routers, 0);
  EXPECT_GT(experts, 0);
}

// As in DeepSeek's folders; other engines must be told that they are not quantised.
TEST(QuantizedFolder, DraftModulesAreCopied) {
  const std::string source =
      std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
  const test::ScratchFolder out;
  ConvertOptions options;
  options.output = out.file("made");
  const auto bytes = to_fp8(source, Fp8Form::kRows, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source), made = Checkpoint::open(options.output);
  ASSERT_TRUE(before.ok() && made.ok()) << made.status().message();
  int copied = 0;
  for (const auto& [name, view] : before.value().tensors()) {
    if (!name.starts_with("model.layers.4.")) continue;
    const auto copy = made.value().find(name);
    ASSERT_TRUE(copy.ok()) << copy.status().message();
    EXPECT_EQ(copy.value()->shape, view->shape) << name;
    EXPECT_EQ(copy.value()->scaled, nullptr) << name;
    ++copied;
  }
  EXPECT_GT(copied, 0);
  const auto config = read_json_file((fs::path(options.output) / "config.json").string()).value();
  EXPECT_EQ(config["quantization_config"]["ignore"].back(), R"(re:.*layers\.4\..*)");
}

TEST(QuantizedFolder, WhatCannotBeConvertedIsNamed) {
  const test::ScratchFolder source, out;
  test::copy_golden("gpt2", source);
  ConvertOptions options;
  options.output = out.file("made");
  EXPECT_NE(
      to_fp8(source.path(), Fp8Form::kRows, options).status().message().find("[inputs, outputs]"),
      std::string::npos);
  options.output = out.file("made.gguf");
  EXPECT_NE(
      to_fp8(source.path(), Fp8Form::kRows, options).status().message().find("a folder is written"),
      std::string::npos);
  const std::atomic<bool> cancelled = true;
  const test::ScratchFolder other;
  test::copy_golden("llama", other);
  options.output = out.file("made");
  options.cancelled = &cancelled;
  EXPECT_EQ(to_fp8(other.path(), Fp8Form::kRows, options).status().code(), StatusCode::kAborted);
  EXPECT_FALSE(fs::exists(options.output));
  EXPECT_FALSE(fs::exists(options.output + ".partial"));
}

}  // namespace
}  // namespace foretoken
