#include "dialled/dialled_chains.h"

#include <gtest/gtest.h>

#include <string>

#include "model/heads/assistant_config.h"
#include "model/heads/medusa_head.h"
#include "model/heads/mlp_speculator.h"
#include "model/registry.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

DialledShape small_chain_target() {
  DialledShape shape;
  shape.vocab_size = 200;
  return shape;
}

TEST(DialledChains, AreReadAsWhatTheyAre) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_dialled_checkpoint(folder.file("target"), small_chain_target()).ok());
  const ModelConfig target = read_model_config(folder.file("target"), {}).value();
  ASSERT_TRUE(
      write_dialled_chain(folder.file("medusa"), small_chain_target(), {.num_draft_tokens = 3})
          .ok());
  EXPECT_EQ(read_medusa_config(folder.file("medusa"), target).value().num_heads, 3);
  ASSERT_TRUE(write_dialled_chain(folder.file("mlp"), small_chain_target(),
                                  {.kind = DialledChain::Kind::kMlp})
                  .ok());
  const auto mlp = read_mlp_speculator_config(folder.file("mlp"), target).value();
  EXPECT_EQ(mlp.num_steps, 4);
  EXPECT_EQ(mlp.inner, target.hidden_size);
  ASSERT_TRUE(write_dialled_chain(folder.file("assistant"), small_chain_target(),
                                  {.kind = DialledChain::Kind::kAssistant, .clusters = 20})
                  .ok());
  const auto assistant = read_assistant_config(folder.file("assistant"), target).value();
  EXPECT_EQ(assistant.clusters, 20);
  EXPECT_EQ(assistant.layer.layers.size(), 1u);
}

TEST(DialledChains, WrongValuesAreNamed) {
  const test::ScratchFolder folder;
  const auto refused = [&](const DialledChain& chain, const char* part) {
    const Status status = write_dialled_chain(folder.file("head"), small_chain_target(), chain);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused({.agreement = 1.5}, "agreement");
  refused({.num_draft_tokens = 0}, "num_draft_tokens");
}

}  // namespace
}  // namespace foretoken
