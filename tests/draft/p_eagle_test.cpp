#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "draft/head_drafter.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

std::string layered(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/layered_heads/" + name;
}

SpeculativeConfig p_eagle_config(const std::string& folder, int drafts) {
  SpeculativeConfig config;
  config.model = folder;
  config.num_speculative_tokens = drafts;
  return config;
}

// What PyTorch drafts with tiny random heads of several layers and with P-EAGLE heads, token by
// token, behind prefixes that are given, not sampled.
TEST(PEagle, HeadsOfSeveralLayersDraftAsTheReferenceDoes) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const nlohmann::json file = read_json_file(layered("golden.json")).value();
  const auto ids = file.at("ids").get<std::vector<int32_t>>();
  const auto first = file.at("first").get<int32_t>();
  const std::string target = layered("../") + file.at("target").get<std::string>();
  int num_prefixes = 0;
  for (const auto& head : file.at("heads")) {
    SCOPED_TRACE(head.at("name"));
    const auto drafts = head.at("drafts").get<std::vector<std::vector<int32_t>>>();
    const auto count = static_cast<int32_t>(drafts.front().size());
    DraftRig rig(target, {p_eagle_config(layered(head.at("name")), count)}, {}, "float32");
    for (size_t i = 0; i < drafts.size(); ++i, ++num_prefixes) {
      const int32_t prefix = first + static_cast<int32_t>(i);
      rig.start(0, {ids.begin(), ids.begin() + prefix - 1});
      rig.forced[0] = {ids[static_cast<size_t>(prefix - 1)]};
      const RigOutput output = rig.step(
          {.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = count, .draft_rows = 100});
      EXPECT_EQ(output.proposed, drafts[i]) << "behind " << prefix;
      rig.release(0);
    }
  }
  EXPECT_EQ(num_prefixes, 5 * 64);
}

TEST(PEagle, KeepsKeysAndValuesOfEveryLayer) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext context;
  const SpeculativeConfig config =
      DrafterCase{.name = "p_eagle", .method = "p_eagle", .num_layers = 3}.config(5);
  const auto drafter =
      make_head_drafter(context.context(config), HeadKind::kPeagle, "p_eagle").value();
  EXPECT_EQ(std::string(drafter->name()), "p_eagle");
  EXPECT_EQ(drafter->traits().max_draft_tokens, 5);
  EXPECT_EQ(drafter->traits().entries_ahead, 4);
  // Three layers of two heads of 32, keys and values, and three states of the target; floats.
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (3 * 2 * 2 * 32 + 3 * 64));
}

// A sequence's drafts depend neither on who drafts beside it nor on how many are wanted.
TEST(PEagle, BlocksOfDifferentLengthsSideBySide) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const SpeculativeConfig config =
      DrafterCase{.name = "p_eagle", .method = "p_eagle", .num_layers = 2}.config(kMaxDraftTokens);
  const std::string folder = dialled_folder(dialled_target());
  const auto span = [](int slot, int limit) {
    return RigSpan{.slot = slot, .num_tokens = 9 + slot, .num_draft_tokens = limit};
  };
  DraftRig together(folder, {config});
  for (int slot = 0; slot < 3; ++slot) together.start(slot, cycle_from(slot * 20, 9 + slot));
  const auto outputs = together.step({span(0, kMaxDraftTokens), span(1, 0), span(2, 3)});
  for (const int slot : {0, 2}) {
    DraftRig alone(folder, {config});
    alone.start(0, cycle_from(slot * 20, 9 + slot));
    RigSpan own = span(slot, slot == 0 ? kMaxDraftTokens : 3);
    own.slot = 0;
    EXPECT_EQ(alone.step(own).proposed, outputs[static_cast<size_t>(slot)].proposed);
  }
  EXPECT_EQ(outputs[0].proposed.size(), static_cast<size_t>(kMaxDraftTokens));
  EXPECT_TRUE(outputs[1].proposed.empty());
  EXPECT_EQ(outputs[2].proposed.size(), 3u);
}

// What is refused, by a word of its sentence: heads without the parts of P-EAGLE.
TEST(PEagle, WhatIsMissingIsNamed) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  SpeculativeConfig config = DrafterCase{.name = "eagle3", .method = "eagle3"}.config(3);
  config.method = "p_eagle";
  expect_contains(refusal(target.make(config)), "set method to eagle3");
  config = DrafterCase{.name = "p_eagle", .method = "p_eagle"}.config(3);
  const std::string folder = config.model;
  config.method = "eagle3";
  expect_contains(refusal(target.make(config)), "set method to p_eagle");

  const ScratchFolder scratch;
  config.method = "p_eagle";
  config.model = scratch.path();
  nlohmann::json json = read_json_file(folder + "/config.json").value();
  json.erase("mask_token_id");
  scratch.write("config.json", json.dump());
  std::filesystem::copy(folder + "/model.safetensors", scratch.file("model.safetensors"));
  expect_contains(refusal(target.make(config)), "'mask_token_id' is missing");
  json["mask_token_id"] = 256;
  scratch.write("config.json", json.dump());
  expect_contains(refusal(target.make(config)), "an id below vocab_size 256");
  json["mask_token_id"] = 1;
  json["num_hidden_layers"] = 2;
  scratch.write("config.json", json.dump());
  expect_contains(refusal(target.make(config)), "layers.1.");
}

}  // namespace
}  // namespace foretoken::test
