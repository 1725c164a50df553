#include "model/block_head.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/golden.h"
#include "model/head_harness.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr int32_t kBlockRows = 24;

DraftHeadOptions block_options() {
  DraftHeadOptions options;
  options.max_model_len = 64;
  options.max_rows = options.max_logits_rows = kBlockRows;
  return options;
}

std::unique_ptr<Model> block_target(const char* dtype) {
  return test::load_test_model(test::golden_folder() + "architectures/llama", {dtype, ""},
                               kBlockRows, 64);
}

Result<std::unique_ptr<BlockHead>> load(const std::string& folder, Model& target) {
  FT_ASSIGN_OR_RETURN(
      const DraftHeadConfig config,
      read_draft_head_config(folder, HeadKind::kDflash, target.config(), ConfigOptions{}));
  return load_block_head(test::model_device(), folder, config, target, block_options());
}

TEST(BlockHead, LoadsThePublishedLayout) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto target = block_target(dtype);
    const auto head = load(test::golden_folder() + "block_heads/dflash", *target);
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_EQ(head.value()->config().num_modules, 2);
    EXPECT_EQ(head.value()->kv_group().num_layers, 2);
    EXPECT_EQ(head.value()->kv_group().num_kv_heads, 2);
    EXPECT_GT(head.value()->weight_bytes(), 0);
    // The output matrix is the target's.
    EXPECT_EQ(head.value()->head().weight, target->shared_head().weight);
    EXPECT_EQ(head.value()->head().rows, 256);
  }
}

TEST(BlockHead, RandomWeightsNeedNoFile) {
  const auto target = block_target("float32");
  const std::string folder = test::golden_folder() + "block_heads/dflash";
  const auto config =
      read_draft_head_config(folder, HeadKind::kDflash, target->config(), ConfigOptions{});
  DraftHeadOptions options = block_options();
  options.dummy = true;
  const auto head = load_block_head(test::model_device(), folder, config.value(), *target, options);
  ASSERT_TRUE(head.ok()) << head.status().message();
}

// One tensor less in the file's header: its name is told.
TEST(BlockHead, AMissingTensorIsNamed) {
  const auto target = block_target("float32");
  const test::ScratchFolder scratch;
  const std::filesystem::path from = test::golden_folder() + "block_heads/dflash";
  std::filesystem::copy(from / "config.json", scratch.file("config.json"));
  std::ifstream in(from / "model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (const std::string name :
       {"hidden_norm.weight", "layers.1.mlp.up_proj.weight", "fc.weight"}) {
    std::string changed = bytes;
    const size_t at = changed.find('"' + name + '"');
    ASSERT_NE(at, std::string::npos);
    changed[at + 1] = 'X';
    std::ofstream(scratch.file("model.safetensors"), std::ios::binary) << changed;
    const auto head = load(scratch.path(), *target);
    ASSERT_FALSE(head.ok());
    EXPECT_NE(head.status().message().find(name), std::string::npos) << head.status().message();
  }
}

}  // namespace
}  // namespace foretoken
