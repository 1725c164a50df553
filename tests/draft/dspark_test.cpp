#include "draft/dspark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

SpeculativeConfig dspark_config(int drafts) {
  return DrafterCase{.name = "dspark", .method = "dspark", .agreement = 1}.config(drafts);
}

int accepted_a_step(const SpeculativeConfig& config, int limit) {
  DraftRig rig(dialled_folder(dialled_target()), {config});
  rig.start(0, cycle_from(0, 9));
  int steps = 0, accepted = 0;
  while (rig.state(0).len < 200) {
    const int left = rig.state(0).len - rig.state(0).computed;
    accepted += rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = limit}).num_accepted;
    ++steps;
  }
  return accepted / steps;
}

// Each draft follows the one before: a head that knows all successors drafts them all.
TEST(Dspark, AllDraftsOfADialledHeadAreRight) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  EXPECT_GE(accepted_a_step(dspark_config(6), 6), 5);
}

TEST(Dspark, UnsureDraftsAreNotProposed) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  SpeculativeConfig config = dspark_config(6);
  config.method_fields["confidence_threshold"] = 0.5;
  DraftRig rig(dialled_folder(dialled_target()), {config});
  rig.start(0, cycle_from(0, 9));
  int proposed = 0, steps = 0;
  for (; steps < 30; ++steps) {
    const int left = rig.state(0).len - rig.state(0).computed;
    const auto output = rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 6});
    proposed += static_cast<int>(output.proposed.size());
  }
  // The dialled confidences are random.
  EXPECT_GT(proposed, 0);
  EXPECT_LT(proposed, 6 * steps * 3 / 4);
}

class DsparkGolden : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Layouts, DsparkGolden, testing::Values("dspark", "dspark-speculators"),
                         [](const auto& layout) {
                           return std::string(layout.param) == "dspark" ? "DeepSpec"
                                                                        : "Speculators";
                         });

// Drafts end before the first that the published confidence head is less sure of.
TEST_P(DsparkGolden, DraftsEndWhereTheReferenceIsUnsure) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const std::string folder = std::string(foretoken::kSourceFolder) + "/tests/golden/";
  const nlohmann::json file = read_json_file(folder + "block_heads/golden.json").value();
  const auto ids = file.at("ids").get<std::vector<int32_t>>();
  const auto first = file.at("first").get<int32_t>();
  const nlohmann::json& heads = file.at("heads");
  const auto found = std::find_if(heads.begin(), heads.end(), [](const nlohmann::json& one) {
    return one.at("name") == GetParam();
  });
  ASSERT_NE(found, heads.end());
  const nlohmann::json& head = *found;
  const auto drafts = head.at("drafts").get<std::vector<std::vector<int32_t>>>();
  const auto sure = head.at("confidences").get<std::vector<std::vector<double>>>();
  ASSERT_EQ(sure.size(), drafts.size());
  for (const double threshold : {0.5, 0.7, 0.75}) {
    SpeculativeConfig config;
    config.method = "dspark";
    config.model = folder + "block_heads/" + GetParam();
    config.method_fields["confidence_threshold"] = threshold;
    DraftRig rig(folder + file.at("target").get<std::string>(), {config}, {}, "float32");
    const double least = std::log(threshold / (1 - threshold));
    int cut = 0;
    for (size_t i = 0; i < drafts.size(); ++i) {
      const int32_t prefix = first + static_cast<int32_t>(i);
      rig.start(0, {ids.begin(), ids.begin() + prefix - 1});
      rig.forced[0] = {ids[static_cast<size_t>(prefix - 1)]};
      const RigOutput output =
          rig.step({.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = 5, .draft_rows = 128});
      const auto unsure =
          std::find_if(sure[i].begin(), sure[i].end(), [&](double one) { return one < least; });
      const std::vector<int32_t> wanted(drafts[i].begin(),
                                        drafts[i].begin() + (unsure - sure[i].begin()));
      EXPECT_EQ(output.proposed, wanted) << threshold << " behind " << prefix;
      cut += wanted.size() < drafts[i].size() ? 1 : 0;
      rig.release(0);
    }
    EXPECT_GT(cut, 5) << threshold;
    EXPECT_LT(cut, 64) << threshold;
  }
}

TEST(Dspark, Fields) {
  SpeculativeConfig config;
  EXPECT_TRUE(check_dspark_fields(config).ok());
  for (const double wrong : {-0.1, 1.0, 2.0}) {
    config.method_fields["confidence_threshold"] = wrong;
    EXPECT_FALSE(check_dspark_fields(config).ok());
  }
}

}  // namespace
}  // namespace foretoken::test
