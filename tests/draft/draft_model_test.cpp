#include "draft/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "draft/drafter_cases.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

class DraftModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
  static SpeculativeConfig config(int drafts) {
    return DrafterCase{.name = "draft_model"}.config(drafts);
  }
  static RigSpan next(const DraftRig& rig, int32_t slot, int limit) {
    return {.slot = slot,
            .num_tokens = rig.state(slot).len - rig.state(slot).computed,
            .num_draft_tokens = limit};
  }
};

// A plain greedy decode of the draft model, as a target of its own.
std::vector<int32_t> greedy(const std::string& folder, const std::vector<int32_t>& ids, int count) {
  DraftRig rig(folder, {});
  rig.start(0, ids);
  std::vector<int32_t> output;
  for (int i = 0; i < count; ++i) {
    const RigSpan span{.slot = 0, .num_tokens = rig.state(0).len - rig.state(0).computed};
    output.push_back(rig.step(span).committed.front());
  }
  return output;
}

TEST_F(DraftModel, DraftsItsOwnGreedyText) {
  DraftRig rig(DrafterCase{.name = "target"}.target(), {config(7)});
  rig.start(0, cycle_from(7, 15));
  for (int step = 0; step < 6; ++step) {
    const RigOutput output = rig.step(next(rig, 0, 7));
    ASSERT_EQ(output.proposed, greedy(config(7).model, rig.tokens(0), 7));
  }
}

// With another vocabulary the same model, its words at other ids, drafts the same.
TEST_F(DraftModel, DraftsThroughATokenMap) {
  const SpeculativeConfig same = config(5);
  DialledShape shape = dialled_target();
  shape.num_layers = 2;
  shape.agreement = 0.75;
  shape.id_shift = 77;
  SpeculativeConfig other = same;
  other.model = dialled_folder(shape);
  other.use_heterogeneous_vocab = true;
  const auto map = [&](DrafterContext& context) {
    context.token_map.resize(256);
    context.token_map_back.resize(256);
    for (int32_t id = 0; id < 256; ++id) {
      const int32_t word = id < 2 ? id : dialled_word(shape, id);
      context.token_map[static_cast<size_t>(word)] = id;
      context.token_map_back[static_cast<size_t>(id)] = word;
    }
  };
  for (const char* method : {"greedy", "probabilistic"}) {
    SpeculativeConfig a = same, b = other;
    a.draft_sample_method = b.draft_sample_method = method;
    DraftRig plain(DrafterCase{.name = "target"}.target(), {a});
    DraftRig mapped(DrafterCase{.name = "target"}.target(), {b}, map);
    for (DraftRig* rig : {&plain, &mapped}) {
      rig->params.temperature = 1;
      rig->start(0, cycle_from(100, 9));
    }
    for (int step = 0; step < 12; ++step) {
      const RigOutput expected = plain.step(next(plain, 0, 5));
      const RigOutput output = mapped.step(next(mapped, 0, 5));
      ASSERT_EQ(output.committed, expected.committed);
      ASSERT_EQ(output.proposed, expected.proposed) << method;
      ASSERT_EQ(output.proposed.size(), 5u);
    }
  }
}

// Tokens that the draft model does not have are never drafted; those it reads have a stand-in.
TEST_F(DraftModel, NeverDraftsWhatHasNoToken) {
  std::set<int32_t> missing;
  const auto map = [&](DrafterContext& context) {
    context.token_map.resize(256);
    context.token_map_back.resize(256);
    for (int32_t id = 0; id < 256; ++id) {
      const bool has = id % 3 != 0;
      context.token_map[static_cast<size_t>(id)] = has ? id : 1;
      context.token_map_back[static_cast<size_t>(id)] = has ? id : -1;
      if (!has) missing.insert(id);
    }
  };
  DraftRig rig(DrafterCase{.name = "target"}.target(), {config(4)}, map);
  rig.start(0, cycle_from(0, 5));
  for (int step = 0; step < 40; ++step) {
    const RigOutput output = rig.step(next(rig, 0, 4));
    ASSERT_EQ(output.proposed.size(), 4u);
    for (const int32_t id : output.proposed) ASSERT_FALSE(missing.contains(id));
  }
  expect_follows_cycle(rig.tokens(0), 5);
}

// A reduced vocabulary drafts what the whole one drafts wherever that is in it.
TEST_F(DraftModel, ReducedVocabulary) {
  SpeculativeConfig reduced = config(1);
  reduced.draft_vocab_size = 128;  // the lowest ids
  DraftRig whole(DrafterCase{.name = "target"}.target(), {config(1)});
  DraftRig part(DrafterCase{.name = "target"}.target(), {reduced});
  for (DraftRig* rig : {&whole, &part}) rig->start(0, cycle_from(11, 6));
  int equal = 0, other = 0;
  for (int step = 0; step < 60; ++step) {
    // One token a step on both sides, so that both see the same ids.
    RigSpan span = next(whole, 0, 1);
    span.max_verified = 0;
    const int32_t expected = whole.step(span).proposed.at(0);
    const int32_t id = part.step(span).proposed.at(0);
    ASSERT_LT(id, 128);
    if (expected < 128) {
      ASSERT_EQ(id, expected);
      ++equal;
    } else {
      ++other;
    }
  }
  EXPECT_GT(equal, 10);
  EXPECT_GT(other, 10);
}

// Drafts sampled with the target's noise are the target's own samples when the models are equal,
// whatever the temperature; the likeliest tokens are not.
TEST_F(DraftModel, ProbabilisticDraftsShareTheNoise) {
  const std::string folder =
      std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/llama";
  SpeculativeConfig self;
  self.method = "draft_model";
  self.model = folder;
  self.num_speculative_tokens = 4;
  int accepted[2] = {};
  for (const bool probabilistic : {false, true}) {
    self.draft_sample_method = probabilistic ? "probabilistic" : "greedy";
    DraftRig rig(folder, {self});
    rig.params.temperature = 1;
    rig.params.top_p = 0.95f;
    for (int32_t slot = 0; slot < 3; ++slot) {
      rig.params.seed = 40 + static_cast<uint64_t>(slot);
      rig.start(slot, {5, 9, 200 + slot});
    }
    for (int step = 0; step < 12; ++step) {
      const auto outputs = rig.step({next(rig, 2, 4), next(rig, 0, 4), next(rig, 1, 4)});
      for (const RigOutput& output : outputs) {
        if (probabilistic) {
          ASSERT_EQ(output.num_accepted, step == 0 ? 0 : 4);
        }
        accepted[probabilistic] += output.num_accepted;
      }
    }
  }
  EXPECT_LT(accepted[0], accepted[1] / 2);
}

// Beyond its own length it gives nothing for that sequence, and goes on for the others.
TEST_F(DraftModel, StopsAtItsOwnLength) {
  SpeculativeConfig limited = config(4);
  limited.max_model_len = 40;
  DraftRig rig(DrafterCase{.name = "target"}.target(), {limited});
  EXPECT_EQ(rig.drafter().traits().max_len, 40);
  Reference reference(DrafterCase{.name = "target"}.target(), limited, rig.params);
  rig.start(0, cycle_from(0, 30));
  rig.start(1, cycle_from(90, 5));
  int silent = 0;
  for (int step = 0; step < 20; ++step) {
    const auto outputs = rig.step({next(rig, 0, 4), next(rig, 1, 4)});
    for (int32_t slot = 0; slot < 2; ++slot) {
      const RigOutput& output = outputs[static_cast<size_t>(slot)];
      const int len = rig.state(slot).len;
      ASSERT_EQ(output.proposed.size(), static_cast<size_t>(std::clamp(41 - len, 0, 4))) << len;
      ASSERT_LE(rig.state(slot).draft.computed, 40);
      if (len > 40) continue;
      ASSERT_EQ(output.proposed, reference.drafts(rig.tokens(slot), 4));
    }
    if (outputs[0].proposed.empty() && !outputs[1].proposed.empty()) ++silent;
  }
  EXPECT_GT(silent, 2);
  EXPECT_GT(rig.state(0).len, 50);
  expect_follows_cycle(rig.tokens(0), 30);
}

TEST_F(DraftModel, ReadsItsOwnTypeAndLengths) {
  DialledShape shape = dialled_target(DType::kBF16);
  shape.num_layers = 2;
  shape.max_position_embeddings = 64;
  SpeculativeConfig other = config(2);
  other.model = dialled_folder(shape);
  DraftRig rig(DrafterCase{.name = "target"}.target(), {other});
  EXPECT_EQ(rig.drafter().traits().max_len, 64);
  EXPECT_TRUE(rig.drafter().traits().keeps_written);
  EXPECT_TRUE(rig.drafter().traits().has_kv);
  // The target's type, float32: two layers of two heads of 16.
  EXPECT_EQ(rig.drafter().bytes_per_block(8), 8 * 2 * 2 * 2 * 16 * 4);
  EXPECT_EQ(rig.drafter().kv_cache()->spec().dtype, DType::kF32);
}

}  // namespace
}  // namespace foretoken::test
