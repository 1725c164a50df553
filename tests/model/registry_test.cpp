#include "model/registry.h"

#include <gtest/gtest.h>

#include "model/forward_harness.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

const std::string kTiny = std::string(foretoken::kSourceFolder) + "/tests/golden/tiny-llama";

constexpr const char* kConfig =
    R"({"architectures":["LlamaForCausalLM"],"vocab_size":64,"hidden_size":16,)"
    R"("intermediate_size":32,"num_hidden_layers":1,"num_attention_heads":2})";

LoadOptions small_options() {
  LoadOptions options;
  options.max_rows = 4;
  options.max_logits_rows = 4;
  return options;
}

TEST(Registry, ListsItsArchitectures) {
  EXPECT_NE(find_architecture("LlamaForCausalLM"), nullptr);
  EXPECT_EQ(find_architecture("llamaforcausallm"), nullptr);
  EXPECT_EQ(known_architectures_hint("LlamaForCasualLM"),
            "; did you mean 'LlamaForCausalLM'? foretoken inspect --families lists what loads");
  EXPECT_EQ(known_architectures_hint("FooForCausalLM"),
            "; foretoken inspect --families lists what loads");
  EXPECT_FALSE(architectures().empty());
}

TEST(Registry, ReportsProgressUpToTheTotal) {
  LoadOptions options = small_options();
  int64_t last = 0, total = 0;
  int calls = 0;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, all);
    last = done;
    total = all;
    ++calls;
  };
  const auto model = load_model(model_device(), kTiny, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(last, total);
  EXPECT_EQ(model.value()->weight_bytes(), total);
  EXPECT_GE(calls, 1);
}

TEST(Registry, CancelsWhileItLoads) {
  LoadOptions options = small_options();
  std::atomic<bool> cancelled = false;
  int calls = 0;
  options.cancelled = &cancelled;
  options.progress = [&](int64_t, int64_t) {
    ++calls;
    cancelled = true;
  };
  const auto model = load_model(model_device(), kTiny, options);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kAborted);
  EXPECT_GE(calls, 1);
}

TEST(Registry, DummyNeedsOnlyTheConfig) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  LoadOptions options = small_options();
  const auto missing = load_model(model_device(), folder.path(), options);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  options.load_format = LoadFormat::kDummy;
  const auto model = load_model(model_device(), folder.path(), options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model.value()->kv_groups(), (std::vector<KvGroupSpec>{{1, 2, 8, DType::kF32, 0}}));
}

TEST(Registry, TooLargeForTheMemory) {
  const ScratchFolder folder;
  std::string config = kConfig;
  config.replace(config.find("\"vocab_size\":64"), 15, "\"vocab_size\":16000000");
  config.replace(config.find("\"hidden_size\":16"), 16, "\"hidden_size\":16384");
  config.replace(config.find("\"num_attention_heads\":2"), 23, "\"num_attention_heads\":32");
  folder.write("config.json", config);
  LoadOptions options = small_options();
  options.load_format = LoadFormat::kDummy;
  const auto model = load_model(model_device(), folder.path(), options);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(model.status().message().find("MiB free"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
