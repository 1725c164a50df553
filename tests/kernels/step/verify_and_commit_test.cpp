#include "kernels/step/verify_and_commit.h"

#include <algorithm>
#include <random>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

struct Case {
  const char* name;
  Ids drafts;
  Ids sampled;
  Ids stop_ids;
  int max_len;
  Ids committed;
  int accepted;
  DeviceFinish finish;
};

const Case kCases[] = {
    {"no_drafts", {}, {7}, {}, 100, {7}, 0, DeviceFinish::kNone},
    {"none_accepted", {1, 2}, {7, 8, 9}, {}, 100, {7}, 0, DeviceFinish::kNone},
    {"one_accepted", {7, 2}, {7, 8, 9}, {}, 100, {7, 8}, 1, DeviceFinish::kNone},
    {"all_accepted", {7, 8}, {7, 8, 9}, {}, 100, {7, 8, 9}, 2, DeviceFinish::kNone},
    {"match_after_mismatch", {1, 8}, {7, 8, 9}, {}, 100, {7}, 0, DeviceFinish::kNone},
    {"stop_at_bonus", {7}, {7, 5}, {4, 5}, 100, {7, 5}, 1, DeviceFinish::kStop},
    {"stop_among_accepted", {7, 5, 8}, {7, 5, 8, 9}, {5}, 100, {7, 5}, 2, DeviceFinish::kStop},
    {"stop_beyond_the_end", {1}, {7, 5}, {5}, 100, {7}, 0, DeviceFinish::kNone},
    {"length", {7, 8, 9}, {7, 8, 9, 6}, {}, 5, {7, 8}, 2, DeviceFinish::kLength},
    {"stop_wins_over_length", {7, 5}, {7, 5, 6}, {5}, 5, {7, 5}, 2, DeviceFinish::kStop},
    {"error_first", {1}, {-1, 3}, {}, 100, {}, 0, DeviceFinish::kError},
    {"error_after_ids", {7}, {7, -1}, {}, 100, {7}, 1, DeviceFinish::kError},
};

class VerifyAndCommitTest : public StepTest, public testing::WithParamInterface<Case> {};

// Slot 2 holds three known tokens; the last one and the drafts are this step's rows.
TEST_P(VerifyAndCommitTest, FollowsTheRules) {
  const Case& c = GetParam();
  StepData d{StepSizes{}};
  const Ids before = {100, 101, 102};
  d.set_sequence(2, before, 2);
  d.set_drafts(2, c.drafts);
  d.params[2].max_len = c.max_len;
  d.params[2].num_stop_ids = static_cast<int32_t>(c.stop_ids.size());
  std::copy(c.stop_ids.begin(), c.stop_ids.end(), d.params[2].stop_ids);
  d.header.step = 41;
  d.add_span(2, 1, kMaxDraftTokens);
  push(d);
  prepare(queue(), prepare_args());
  pull(d);
  std::copy(c.sampled.begin(), c.sampled.end(), d.sampled.begin());
  write(tensors_.sampled, d.sampled);
  verify_and_commit(queue(), verify_and_commit_args());
  pull(d);

  EXPECT_EQ(d.result_header.step, 41u);
  EXPECT_EQ(d.result_header.num_spans, 1);
  EXPECT_EQ(d.result_header.num_rows, 1 + static_cast<int>(c.drafts.size()));
  const SpanResult& r = d.results[0];
  EXPECT_EQ(r.slot, 2);
  EXPECT_EQ(Ids(r.ids, r.ids + r.num_committed), c.committed);
  EXPECT_EQ(r.num_drafted, static_cast<int>(c.drafts.size()));
  EXPECT_EQ(r.num_accepted, c.accepted);
  EXPECT_EQ(r.finish, static_cast<int32_t>(c.finish));
  Ids tokens = before;
  tokens.insert(tokens.end(), c.committed.begin(), c.committed.end());
  EXPECT_EQ(d.tokens(2), tokens);
  const SlotState& s = d.slots[2];
  EXPECT_EQ(s.len, static_cast<int>(tokens.size()));
  EXPECT_EQ(s.computed, s.len - 1);
  EXPECT_EQ(s.num_draft_tokens, 0);
  EXPECT_EQ(s.finished, static_cast<int32_t>(c.finish));
  const int32_t* table = &d.block_tables[2 * d.sizes.max_blocks];
  EXPECT_EQ(d.page_headers[table[0]].count, std::min(s.len, 4));
  EXPECT_EQ(d.page_headers[table[1]].count, std::clamp(s.len - 4, 0, 4));
}

INSTANTIATE_TEST_SUITE_P(Table, VerifyAndCommitTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

class CommitSpansTest : public StepTest {};

TEST_F(CommitSpansTest, PromptChunksAdvanceAndFinishedSlotsStayStill) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3, 4, 5, 6}, 1);
  d.set_sequence(1, {7, 8}, 1);
  d.slots[1].finished = static_cast<int32_t>(DeviceFinish::kLength);
  d.set_sequence(3, {9}, 0);
  d.add_span(0, 3, 0);
  d.add_span(1, 1, 4);
  d.add_span(3, 1, 4);
  push(d);
  prepare(queue(), prepare_args());
  write(tensors_.sampled, Ids{55});
  verify_and_commit(queue(), verify_and_commit_args());
  pull(d);
  EXPECT_EQ(d.slots[0].computed, 4);
  EXPECT_EQ(d.slots[0].len, 6);
  EXPECT_EQ(d.results[0].num_committed, 0);
  EXPECT_EQ(d.results[0].finish, 0);
  EXPECT_EQ(d.slots[1].len, 2);
  EXPECT_EQ(d.slots[1].finished, static_cast<int32_t>(DeviceFinish::kLength));
  EXPECT_EQ(d.results[1].slot, 1);
  EXPECT_EQ(d.results[1].num_committed, 0);
  EXPECT_EQ(d.results[1].num_drafted, 0);
  EXPECT_EQ(d.results[1].finish, 0);
  EXPECT_EQ(d.results[2].num_committed, 1);
  EXPECT_EQ(d.results[2].ids[0], 55);
  EXPECT_EQ(d.tokens(3), (Ids{9, 55}));
}

// Rows whose next token is known lie before those that sample.
TEST_F(CommitSpansTest, ScoredRowsAreSkipped) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3, 4, 5, 6}, 1);  // all scored
  d.set_sequence(1, {7, 8, 9}, 0);           // two scored, two drafts
  d.set_drafts(1, {20, 21});
  d.add_span(0, 3, 0);
  d.add_span(1, 3, 4);
  d.spans[0].wants_all = d.spans[1].wants_all = 1;
  push(d);
  prepare(queue(), prepare_args());
  write(tensors_.sampled, Ids{3, 4, 5, 8, 9, 20, 30, 31});
  verify_and_commit(queue(), verify_and_commit_args());
  pull(d);
  EXPECT_EQ(d.result_header.num_logits_rows, 8);
  EXPECT_EQ(d.slots[0].computed, 4);
  EXPECT_EQ(d.results[0].num_committed, 0);
  EXPECT_EQ(d.results[0].logits_begin, 0);
  EXPECT_EQ(d.results[0].num_scored, 3);
  EXPECT_EQ(d.results[1].num_committed, 2);
  EXPECT_EQ(d.results[1].num_accepted, 1);
  EXPECT_EQ(d.results[1].logits_begin, 3);
  EXPECT_EQ(d.results[1].num_scored, 2);
  EXPECT_EQ(d.tokens(1), (Ids{7, 8, 9, 20, 30}));
  EXPECT_EQ(d.slots[1].computed, 4);
}

TEST_F(CommitSpansTest, PoolingEndsWithTheLastPromptToken) {
  StepData d{StepSizes{}};
  for (int s = 0; s < 3; ++s) {
    d.set_sequence(s, {1, 2, 3}, 0);
    d.params[static_cast<size_t>(s)].pooling = static_cast<int32_t>(DevicePooling::kLast);
  }
  d.slots[2].computed = 3;
  d.slots[2].finished = static_cast<int32_t>(DeviceFinish::kStop);
  d.add_span(0, 2, 4);
  d.add_span(1, 3, 4);
  d.add_span(2, 3, 4);
  push(d);
  prepare(queue(), prepare_args());
  verify_and_commit(queue(), verify_and_commit_args());
  pull(d);
  EXPECT_EQ(d.slots[0].computed, 2);
  EXPECT_EQ(d.slots[0].finished, 0);
  EXPECT_EQ(d.results[0].finish, 0);
  EXPECT_EQ(d.slots[1].computed, 3);
  EXPECT_EQ(d.slots[1].len, 3);
  EXPECT_EQ(d.slots[1].finished, static_cast<int32_t>(DeviceFinish::kStop));
  EXPECT_EQ(d.results[1].finish, static_cast<int32_t>(DeviceFinish::kStop));
  EXPECT_EQ(d.results[1].num_committed, 0);
  EXPECT_EQ(d.results[2].finish, 0) << "it ended before";
}

// Random batches against a few lines that build the whole token list first.
TEST_F(CommitSpansTest, RandomBatchesMatchAPlainReference) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    StepData d{StepSizes{}};
    std::vector<Ids> history(4);
    for (int s = 0; s < 4; ++s) {
      Ids drafts(below(4));
      for (int32_t& id : drafts) id = below(3);
      history[s].resize(1 + below(12));
      for (int32_t& id : history[s]) id = below(50);
      d.set_sequence(s, history[s], static_cast<int>(history[s].size()) - 1);
      d.set_drafts(s, drafts);
      d.params[s].max_len = static_cast<int>(history[s].size()) + 1 + below(5);
      d.params[s].num_stop_ids = below(2);
      d.params[s].stop_ids[0] = 2;
      d.add_span(s, 1, below(4));
    }
    push(d);
    prepare(queue(), prepare_args());
    pull(d);
    for (int32_t& id : d.sampled) id = below(12) == 0 ? -1 : below(3);
    write(tensors_.sampled, d.sampled);
    const StepData before = d;
    verify_and_commit(queue(), verify_and_commit_args());
    pull(d);
    for (int i = 0; i < 4; ++i) {
      const SpanState& span = before.span_states[i];
      const SlotParams& p = before.params[i];
      Ids want;
      auto finish = DeviceFinish::kNone;
      for (int k = 0; k <= span.num_draft_tokens && finish == DeviceFinish::kNone; ++k) {
        const int32_t id = before.sampled[span.logits_begin + k];
        if (id < 0) {
          finish = DeviceFinish::kError;
          break;
        }
        want.push_back(id);
        history[i].push_back(id);
        if (static_cast<int>(history[i].size()) >= p.max_len) finish = DeviceFinish::kLength;
        if (p.num_stop_ids > 0 && id == p.stop_ids[0]) finish = DeviceFinish::kStop;
        if (k < span.num_draft_tokens && before.slots[i].drafts[k] != id) break;
      }
      const SpanResult& r = d.results[i];
      ASSERT_EQ(Ids(r.ids, r.ids + r.num_committed), want) << "round " << round << " span " << i;
      ASSERT_EQ(r.finish, static_cast<int32_t>(finish));
      ASSERT_EQ(d.tokens(i), history[i]);
    }
  }
}

}  // namespace
}  // namespace foretoken
