#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

std::string block_golden(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/" + name;
}

// What PyTorch drafts with tiny random heads (tests/golden/block_heads) behind each of 64 prefixes.
TEST(Dflash, DraftsAsTheReferenceDoes) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const nlohmann::json file = read_json_file(block_golden("block_heads/golden.json")).value();
  const auto ids = file.at("ids").get<std::vector<int32_t>>();
  const auto first = file.at("first").get<int32_t>();
  for (const auto& head : file.at("heads")) {
    const std::string name = head.at("name");
    const auto drafts = head.at("drafts").get<std::vector<std::vector<int32_t>>>();
    SpeculativeConfig config;
    config.method = name.substr(0, name.find('-'));
    config.model = block_golden("block_heads/" + name);
    DraftRig rig(block_golden(file.at("target")), {config}, {}, "float32");
    EXPECT_EQ(rig.drafter().traits().max_draft_tokens, static_cast<int>(drafts[0].size()));
    for (size_t i = 0; i < drafts.size(); ++i) {
      const int32_t prefix = first + static_cast<int32_t>(i);
      SCOPED_TRACE(name + " behind " + std::to_string(prefix));
      rig.start(0, {ids.begin(), ids.begin() + prefix - 1});
      rig.forced[0] = {ids[static_cast<size_t>(prefix - 1)]};
      const RigOutput output =
          rig.step({.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = 5, .draft_rows = 128});
      EXPECT_EQ(output.proposed, drafts[i]);
      rig.release(0);
    }
  }
}

// The first draft is the dialled head's word, the others the same word again.
TEST(Dflash, TheFirstDraftOfADialledHeadIsRight) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const SpeculativeConfig config =
      DrafterCase{.name = "dflash", .method = "dflash", .agreement = 1}.config(3);
  DraftRig rig(dialled_folder(dialled_target()), {config});
  rig.start(0, cycle_from(0, 9));
  int steps = 0, accepted = 0;
  while (rig.state(0).len < 200) {
    const int left = rig.state(0).len - rig.state(0).computed;
    accepted += rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 3}).num_accepted;
    ++steps;
  }
  EXPECT_GT(accepted, steps * 9 / 10);
}

}  // namespace
}  // namespace foretoken::test
