#include "draft/chain_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

std::string chain_golden(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/" + name;
}

// What NumPy drafts with tiny random heads (tests/golden/chain_heads) behind each of 64 prefixes.
class ChainGolden {
 public:
  ChainGolden() : file_(read_json_file(chain_golden("chain_heads/golden.json")).value()) {
    ids_ = file_.at("ids").get<std::vector<int32_t>>();
    first_ = file_.at("first");
    for (const auto& head : file_.at("heads")) {
      drafts_[head.at("name")] = head.at("drafts").get<std::vector<std::vector<int32_t>>>();
    }
  }

  std::string target() const { return chain_golden(file_.at("target")); }
  const std::map<std::string, std::vector<std::vector<int32_t>>>& heads() const { return drafts_; }
  int32_t first() const { return first_; }
  int32_t num_prefixes() const { return static_cast<int32_t>(drafts_.begin()->second.size()); }
  std::vector<int32_t> ids(int32_t count) const { return {ids_.begin(), ids_.begin() + count}; }
  int32_t id(int32_t index) const { return ids_.at(static_cast<size_t>(index)); }
  // The first `count` drafts behind so many ids.
  std::vector<int32_t> drafts(const std::string& head, int32_t prefix, int32_t count) const {
    const auto& all = drafts_.at(head).at(static_cast<size_t>(prefix - first_));
    return {all.begin(), all.begin() + count};
  }

 private:
  nlohmann::json file_;
  std::vector<int32_t> ids_;
  int32_t first_ = 0;
  std::map<std::string, std::vector<std::vector<int32_t>>> drafts_;
};

SpeculativeConfig chain_config(const std::string& name) {
  SpeculativeConfig config;
  config.method = name.substr(0, name.find('-'));
  config.model = chain_golden("chain_heads/" + name);
  return config;
}

class ChainDrafterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
  const ChainGolden golden_;
};

TEST_F(ChainDrafterTest, DraftsAsTheReferenceDoes) {
  for (const auto& [name, drafts] : golden_.heads()) {
    DraftRig rig(golden_.target(), {chain_config(name)}, {}, "float32");
    EXPECT_EQ(rig.drafter().traits().max_draft_tokens, 4);
    for (int32_t i = 0; i < golden_.num_prefixes(); ++i) {
      const int32_t prefix = golden_.first() + i;
      SCOPED_TRACE(name + " behind " + std::to_string(prefix));
      rig.start(0, golden_.ids(prefix - 1));
      rig.forced[0] = {golden_.id(prefix - 1)};
      const RigOutput output =
          rig.step({.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = 4, .draft_rows = 0});
      EXPECT_EQ(output.proposed, golden_.drafts(name, prefix, 4));
      rig.release(0);
    }
  }
}

// Sequences of one step want different numbers of drafts, and some none: each gets its own.
TEST_F(ChainDrafterTest, RaggedCountsOfOneStep) {
  constexpr int32_t kWanted[] = {2, 4, 0, 1, 3, 4};
  for (const auto& [name, drafts] : golden_.heads()) {
    DraftRig rig(golden_.target(), {chain_config(name)}, {}, "float32");
    std::vector<RigSpan> spans;
    for (int32_t slot = 0; slot < 6; ++slot) {
      const int32_t prefix = golden_.first() + 7 * slot;
      rig.start(slot, golden_.ids(prefix - 1));
      rig.forced[slot] = {golden_.id(prefix - 1)};
      spans.push_back({.slot = slot,
                       .num_tokens = prefix - 1,
                       .num_draft_tokens = kWanted[slot],
                       .draft_rows = 0});
    }
    const std::vector<RigOutput> outputs = rig.step(spans);
    for (int32_t slot = 0; slot < 6; ++slot) {
      const int32_t prefix = golden_.first() + 7 * slot;
      EXPECT_EQ(outputs[static_cast<size_t>(slot)].proposed,
                golden_.drafts(name, prefix, kWanted[slot]))
          << name << " slot " << slot;
    }
  }
}

// Behind a decoding step, whatever of its drafts was taken, drafts are those of the ids.
TEST_F(ChainDrafterTest, DraftsFollowTheIdsStepByStep) {
  for (const auto& [name, drafts] : golden_.heads()) {
    DraftRig rig(golden_.target(), {chain_config(name)}, {}, "float32");
    int32_t known = golden_.first();
    rig.start(1, golden_.ids(known - 1));
    rig.forced[1] = {golden_.id(known - 1)};
    RigOutput output =
        rig.step({.slot = 1, .num_tokens = known - 1, .num_draft_tokens = 4, .draft_rows = 0});
    while (known < golden_.first() + 40) {
      ASSERT_EQ(output.proposed, golden_.drafts(name, known, 4)) << name << " behind " << known;
      // The first draft is refused: the next known id takes its place.
      rig.forced[1] = {golden_.id(known)};
      const bool taken = output.proposed[0] == golden_.id(known);
      output = rig.step({.slot = 1,
                         .num_tokens = 1,
                         .max_verified = taken ? 0 : 4,
                         .num_draft_tokens = 4,
                         .draft_rows = 0});
      ASSERT_EQ(output.committed, std::vector<int32_t>{golden_.id(known)});
      ++known;
    }
  }
}

TEST_F(ChainDrafterTest, HasNoKeysAndValues) {
  const DraftContext target;
  for (const char* name : {"medusa", "mlp_speculator"}) {
    const DrafterTraits traits = find_drafter(name).value()->traits;
    EXPECT_TRUE(traits.reads_files && traits.needs_model && traits.counts_itself);
    EXPECT_FALSE(traits.has_kv || traits.keeps_written || traits.one_pass);
    EXPECT_FALSE(traits.maps_vocabulary || traits.looks_up || traits.proposes_unmasked);
    EXPECT_EQ(traits.entries_ahead, 0);
    DraftRig rig(golden_.target(), {chain_config(name)});
    EXPECT_EQ(rig.drafter().kv_cache(), nullptr);
    EXPECT_GT(rig.drafter().memory_bytes(), 0);
    // One state of the target for each position.
    EXPECT_EQ(rig.drafter().bytes_per_block(8),
              8 * 32 * static_cast<int64_t>(dtype_size(rig.target().config().dtype)));
  }
}

TEST_F(ChainDrafterTest, SampledDraftsOfAReducedVocabularyStayInIt) {
  for (const auto& [name, drafts] : golden_.heads()) {
    SpeculativeConfig config = chain_config(name);
    config.draft_sample_method = "probabilistic";
    config.draft_vocab_size = 120;
    config.num_speculative_tokens = 3;
    DraftRig rig(golden_.target(), {config});
    rig.params.temperature = 1;
    for (const int32_t prefix : {5, 19, 44}) {
      rig.start(0, golden_.ids(prefix));
      const RigOutput output = rig.step({.slot = 0, .num_tokens = prefix, .num_draft_tokens = 3});
      EXPECT_EQ(output.proposed.size(), 3u) << name;
      for (const int32_t id : output.proposed) EXPECT_TRUE(id >= 0 && id < 120) << name << id;
      rig.release(0);
    }
  }
}

TEST_F(ChainDrafterTest, MoreDraftsThanHeadsAreRefused) {
  DraftRig rig(golden_.target(), {});
  for (const char* name : {"medusa", "mlp_speculator"}) {
    SpeculativeConfig config = chain_config(name);
    DrafterContext context{.config = config,
                           .device = *test_device(),
                           .target = rig.target(),
                           .target_folder = golden_.target(),
                           .folder = config.model,
                           .attention = nullptr,
                           .max_model_len = 256,
                           .max_rows = 16,
                           .max_spans = 4,
                           .token_map = {},
                           .token_map_back = {},
                           .draft_vocab_ids = {}};
    config.num_speculative_tokens = 5;
    expect_contains(refusal(make_drafter(context)), "drafts 4 tokens; give at most 4");
    config.num_speculative_tokens = 2;
    EXPECT_EQ(make_drafter(context).value()->traits().max_draft_tokens, 2);
    context.is_absent = true;
    EXPECT_EQ(make_drafter(context).value()->traits().max_draft_tokens, 2);
    context.is_absent = false;
    context.dummy = true;
    const ScratchFolder folder;
    std::filesystem::copy_file(config.model + "/config.json", folder.file("config.json"));
    context.folder = folder.path();
    config.model = folder.path();
    EXPECT_TRUE(make_drafter(context).ok()) << "random weights need config.json alone";
    context.dummy = false;
    expect_contains(refusal(make_drafter(context)), folder.path());
    config.method = name == std::string("medusa") ? "mlp_speculator" : "medusa";
    context.folder = chain_config(name).model;
    expect_contains(refusal(make_drafter(context)), std::string("set method to ") + name);
  }
}

}  // namespace
}  // namespace foretoken::test
