#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "draft/draft_context.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

// Gemma 4's assistants, which attend to what the target keeps.

namespace foretoken::test {
namespace {

std::string assistant_golden(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/" + name;
}

// What transformers drafts with a tiny random assistant (tests/golden/assistants) behind each of 64
// prefixes, of which the longer ones are more than a window.
class AssistantTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    const nlohmann::json file = read_json_file(assistant_golden("assistants/golden.json")).value();
    ids_ = file.at("ids").get<std::vector<int32_t>>();
    first_ = file.at("first");
    for (const auto& each : file.at("assistants")) {
      if (each.at("name") != GetParam()) continue;
      target_ = assistant_golden(each.at("target"));
      drafts_ = each.at("drafts").get<std::vector<std::vector<int32_t>>>();
    }
    ASSERT_FALSE(drafts_.empty());
  }

  static SpeculativeConfig config() {
    SpeculativeConfig config;
    config.method = "gemma4_assistant";
    config.model = assistant_golden("assistants/" + GetParam());
    config.num_speculative_tokens = 4;
    return config;
  }
  DraftRig rig(const SpeculativeConfig& drafter = config()) const {
    return DraftRig(target_, {drafter}, {}, "float32");
  }
  int32_t num_prefixes() const { return static_cast<int32_t>(drafts_.size()); }
  std::vector<int32_t> ids(int32_t count) const { return {ids_.begin(), ids_.begin() + count}; }
  int32_t id(int32_t index) const { return ids_.at(static_cast<size_t>(index)); }
  // The first `count` drafts behind so many ids.
  std::vector<int32_t> drafts(int32_t prefix, int32_t count) const {
    const auto& all = drafts_.at(static_cast<size_t>(prefix - first_));
    return {all.begin(), all.begin() + count};
  }

  std::string target_;
  std::vector<int32_t> ids_;
  std::vector<std::vector<int32_t>> drafts_;
  int32_t first_ = 0;
};

TEST_P(AssistantTest, DraftsAsTransformersDoes) {
  DraftRig rig = this->rig();
  for (int32_t i = 0; i < num_prefixes(); ++i) {
    const int32_t prefix = first_ + i;
    rig.start(0, ids(prefix - 1));
    rig.forced[0] = {id(prefix - 1)};
    const RigOutput output =
        rig.step({.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = 4, .draft_rows = 0});
    EXPECT_EQ(output.proposed, drafts(prefix, 4)) << "behind " << prefix;
    rig.release(0);
  }
}

// Drafts that are refused leave keys and values behind the sequence, which nothing may see.
TEST_P(AssistantTest, DraftsFollowTheIdsStepByStep) {
  DraftRig rig = this->rig();
  int32_t known = first_;
  rig.start(1, ids(known - 1));
  rig.forced[1] = {id(known - 1)};
  RigOutput output =
      rig.step({.slot = 1, .num_tokens = known - 1, .num_draft_tokens = 4, .draft_rows = 0});
  while (known < first_ + num_prefixes() - 1) {
    ASSERT_EQ(output.proposed, drafts(known, 4)) << "behind " << known;
    rig.forced[1] = {id(known)};
    const bool taken = output.proposed[0] == id(known);
    output = rig.step({.slot = 1,
                       .num_tokens = 1,
                       .max_verified = taken ? 0 : 4,
                       .num_draft_tokens = 4,
                       .draft_rows = 0});
    ASSERT_EQ(output.committed, std::vector<int32_t>{id(known)});
    ++known;
  }
}

TEST_P(AssistantTest, RaggedCountsOfOneStep) {
  constexpr int32_t kWanted[] = {2, 4, 0, 1, 3, 4};
  DraftRig rig = this->rig();
  std::vector<RigSpan> spans;
  for (int32_t slot = 0; slot < 6; ++slot) {
    const int32_t prefix = first_ + 9 * slot;
    rig.start(slot, ids(prefix - 1));
    rig.forced[slot] = {id(prefix - 1)};
    spans.push_back({.slot = slot,
                     .num_tokens = prefix - 1,
                     .num_draft_tokens = kWanted[slot],
                     .draft_rows = 0});
  }
  const std::vector<RigOutput> outputs = rig.step(spans);
  for (int32_t slot = 0; slot < 6; ++slot) {
    EXPECT_EQ(outputs[static_cast<size_t>(slot)].proposed, drafts(first_ + 9 * slot, kWanted[slot]))
        << slot;
  }
}

TEST_P(AssistantTest, NothingIsWrittenToTheTargetsKeysAndValues) {
  DraftRig rig = this->rig(), without(target_, {}, {}, "float32");
  constexpr int32_t kPrefix = 40;
  for (DraftRig* each : {&rig, &without}) {
    each->start(0, ids(kPrefix));
    each->step({.slot = 0, .num_tokens = kPrefix, .num_draft_tokens = each == &rig ? 4 : 0});
  }
  for (int32_t position = 0; position < kPrefix + 4; ++position) {
    EXPECT_EQ(rig.entry(rig.target_cache(), 0, position),
              without.entry(without.target_cache(), 0, position))
        << position;
  }
}

TEST_P(AssistantTest, SampledDraftsOfAReducedVocabularyStayInIt) {
  SpeculativeConfig reduced = config();
  reduced.draft_sample_method = "probabilistic";
  reduced.draft_vocab_size = 60;
  DraftRig rig = this->rig(reduced);
  rig.params.temperature = 1;
  for (const int32_t prefix : {5, 19, 44}) {
    rig.start(0, ids(prefix));
    const RigOutput output = rig.step({.slot = 0, .num_tokens = prefix, .num_draft_tokens = 4});
    for (const int32_t draft : output.proposed) EXPECT_TRUE(draft >= 0 && draft < 60) << draft;
    rig.release(0);
  }
}

TEST_P(AssistantTest, HasNoKeysAndValues) {
  const DrafterTraits traits = find_drafter("gemma4_assistant").value()->traits;
  EXPECT_TRUE(traits.reads_files && traits.needs_model && traits.reads_target_kv);
  EXPECT_FALSE(traits.has_kv || traits.counts_itself || traits.proposes_unmasked);
  DraftRig rig = this->rig();
  EXPECT_EQ(rig.drafter().kv_cache(), nullptr);
  EXPECT_EQ(rig.drafter().bytes_per_block(8), 8 * 32 * 4) << "a state of the target a position";
}

INSTANTIATE_TEST_SUITE_P(All, AssistantTest, testing::Values("dense", "ordered", "unified"),
                         [](const auto& param) { return param.param; });

TEST(Assistant, IsFoundByItsFilesUnderTheNamesOfOthers) {
  const std::string folder = assistant_golden("assistants/dense");
  for (const char* method :
       {"", "gemma4_assistant", "gemma4_mtp", "gemma4_unified_assistant", "mtp"}) {
    SpeculativeConfig config;
    config.method = method;
    config.model = folder;
    EXPECT_EQ(std::string(choose_drafter(config, folder).value()->name), "gemma4_assistant")
        << method;
  }
  SpeculativeConfig config;
  config.method = "mtp";
  EXPECT_EQ(std::string(choose_drafter(config, "").value()->name), "mtp");
  config.method = "eagle";
  EXPECT_EQ(std::string(choose_drafter(config, folder).value()->name), "eagle");
}

}  // namespace
}  // namespace foretoken::test
