#include <gtest/gtest.h>

#include <string>

#include "draft/drafter_cases.h"

// Every drafter with n-gram before it: whichever of them drafts, the entries of the one with KV are
// those of a fresh pass, and where its turn comes so are its drafts.
namespace foretoken::test {
namespace {

constexpr int kListedDrafts = 6;  // divisible by any number of modules here

SpeculativeConfig short_lookup() {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = kListedDrafts;
  config.prompt_lookup_min = 2;
  config.prompt_lookup_max = 4;
  return config;
}

class ListedDrafters : public testing::TestWithParam<DrafterCase> {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    const SpeculativeConfig config = GetParam().config(kListedDrafts);
    rig_ = std::make_unique<DraftRig>(GetParam().target(), std::vector{short_lookup(), config},
                                      std::function<void(DrafterContext&)>(), "auto",
                                      GetParam().kv_format);
    rig_->params.drafter = 1;
    reference_ = std::make_unique<Reference>(GetParam().target(), config, SlotParams(rig_->params),
                                             GetParam().kv_format);
    rig_->params.lookups = 1;
  }
  void expect_exact_entries() {
    const std::vector<int32_t> ids = rig_->tokens(0);
    const Reference::Entries fresh = reference_->entries(ids);
    const KvCache& cache = *rig_->drafter(1).kv_cache();
    for (int32_t i = GetParam().first_entry(); i < rig_->state(0).draft.computed; ++i) {
      ASSERT_EQ(rig_->entry(cache, 0, i), fresh.drafter[static_cast<size_t>(i)]) << "entry " << i;
    }
  }

  std::unique_ptr<DraftRig> rig_;
  std::unique_ptr<Reference> reference_;
};

TEST_P(ListedDrafters, KeepEntriesAndDraftsExact) {
  // Half of the text stands in the prompt already, so that both have turns.
  std::vector<int32_t> ids = cycle_from(5, 40);
  const std::vector<int32_t> again = cycle_from(5, 8);
  ids.insert(ids.end(), again.begin(), again.end());
  rig_->start(0, ids);
  int num_turns[2] = {0, 0};
  while (rig_->state(0).len < 160) {
    const RigOutput output = rig_->step({.slot = 0,
                                         .num_tokens = rig_->state(0).len - rig_->state(0).computed,
                                         .num_draft_tokens = kListedDrafts});
    ASSERT_EQ(rig_->state(0).draft.computed, rig_->state(0).len);
    const int32_t by = rig_->state(0).drafted_by;
    ++num_turns[by];
    if (by == 1) {
      ASSERT_EQ(output.proposed, reference_->drafts(rig_->tokens(0), kListedDrafts));
    }
  }
  expect_exact_entries();
  EXPECT_GT(num_turns[0], 0);
  EXPECT_GT(num_turns[1], 0);
}

INSTANTIATE_TEST_SUITE_P(All, ListedDrafters, testing::ValuesIn(drafter_cases()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace foretoken::test
