#include "model/heads/chain_loader.h"

#include <gtest/gtest.h>

#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

TEST(ChainConfig, NamesTheFolderWithoutOne) {
  const ScratchFolder folder;
  const auto missing = ChainConfig::read(folder.path());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find(folder.path()), std::string::npos);
  folder.write("config.json", R"({"n_predict": 3})");
  const ChainConfig config = ChainConfig::read(folder.path()).value();
  const ConfigFields fields(config.json, config.where);
  int32_t length = 0;
  EXPECT_TRUE(read_chain_len(fields, "n_predict", &length).ok());
  EXPECT_EQ(length, 3);
  EXPECT_TRUE(read_chain_len(fields, "other", &length).ok());
  EXPECT_EQ(length, 3);
  EXPECT_TRUE(check_chain_size(fields, "emb_dim", 8, 8).ok());
  EXPECT_NE(check_chain_size(fields, "emb_dim", 8, 9).message().find("emb_dim 8"),
            std::string::npos);
}

TEST(ChainLoader, OpensACheckpointOrMakesRandomWeights) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const auto target = load_test_model(golden_folder() + "architectures/llama", {}, 8);
  const ScratchFolder empty;
  Arena arena(model_device(), MemoryKind::kDevice);
  DraftHeadOptions options;
  const ChainSource source{model_device(), empty.path(), *target, options};
  EXPECT_FALSE(ChainLoader::open(source, arena, 100).ok()) << "there are no weights";
  options.dummy = true;
  const auto random = ChainLoader::open(source, arena, 100).value();
  EXPECT_TRUE(random->is_random());
  options.dummy = false;
  const std::string folder = golden_folder() + "chain_heads/mlp_speculator";
  const auto loader =
      ChainLoader::open({model_device(), folder, *target, options}, arena, 100).value();
  EXPECT_FALSE(loader->is_random());
  EXPECT_TRUE(loader->weights().has_optional("speculator.emb.0.weight"));
}

}  // namespace
}  // namespace foretoken::test
