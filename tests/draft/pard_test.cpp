#include "draft/pard.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

// Behind a mask a language model drafts what it samples there when masks are read as text.
TEST(Pard, DraftsAreWhatTheModelSaysBehindMasks) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const SpeculativeConfig config =
      DrafterCase{.name = "pard", .method = "pard", .agreement = 1}.config(3);
  DraftRig rig(dialled_folder(dialled_target()), {config});
  DraftRig plain(config.model, {});
  for (const int32_t count : {5, 9, 40}) {
    rig.start(0, cycle_from(0, count));
    const RigOutput output = rig.step({.slot = 0, .num_tokens = count, .num_draft_tokens = 3});
    std::vector<int32_t> ids = rig.tokens(0);
    for (const int32_t draft : output.proposed) {
      plain.start(0, ids);
      const auto size = static_cast<int32_t>(ids.size());
      EXPECT_EQ(plain.step({.slot = 0, .num_tokens = size, .draft_rows = 0}).committed.at(0),
                draft);
      plain.release(0);
      ids.push_back(1);
    }
    rig.release(0);
  }
}

// What transformers drafts with a tiny random model (tests/golden/pard_head) behind each of 64
// prefixes.
TEST(Pard, DraftsAsTheReferenceDoes) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const std::string golden = std::string(foretoken::kSourceFolder) + "/tests/golden/";
  const nlohmann::json file = read_json_file(golden + "pard_head/golden.json").value();
  const auto ids = file.at("ids").get<std::vector<int32_t>>();
  const auto first = file.at("first").get<int32_t>();
  const auto drafts = file.at("drafts").get<std::vector<std::vector<int32_t>>>();
  ASSERT_EQ(drafts.size(), 64u);
  SpeculativeConfig config;
  config.method = "pard";
  config.model = golden + "pard_head/pard";
  config.num_speculative_tokens = static_cast<int>(drafts.front().size());
  DraftRig rig(golden + file.at("target").get<std::string>(), {config}, {}, "float32");
  for (size_t i = 0; i < drafts.size(); ++i) {
    const int32_t prefix = first + static_cast<int32_t>(i);
    rig.start(0, {ids.begin(), ids.begin() + prefix - 1});
    rig.forced[0] = {ids[static_cast<size_t>(prefix - 1)]};
    const RigOutput output = rig.step({.slot = 0,
                                       .num_tokens = prefix - 1,
                                       .num_draft_tokens = config.num_speculative_tokens,
                                       .draft_rows = 128});
    EXPECT_EQ(output.proposed, drafts[i]) << "behind " << prefix;
    rig.release(0);
  }
}

TEST(Pard, AModelWithoutAMaskIsNamed) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  SpeculativeConfig config = DrafterCase{.name = "draft_model"}.config(3);
  config.method = "pard";
  const auto drafter = target.make(config);
  ASSERT_FALSE(drafter.ok());
  expect_contains(drafter.status().message(), "'pard_token' is missing");
}

}  // namespace
}  // namespace foretoken::test
