#include "kernels/draft/draft_rows.h"

#include <algorithm>
#include <random>

#include "support/step_data.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

struct Row {
  int slot;
  int position;
  int32_t id;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << "{slot " << row.slot << " position " << row.position << " id " << row.id << "}";
}

class DraftRowsTest : public StepTest {
 protected:
  static constexpr int kRows = 24;

  // A slot after a commit that sampled, its tokens 100 * slot + position.
  static void add_sampled(StepData& d, int slot, int len, int exact, int wanted, int draft_rows) {
    add_span(d, slot, len, len - 1, exact, draft_rows);
    d.slots[slot].draft.num_draft_tokens = wanted;
    d.span_states[d.spans.size() - 1].num_logits = 1;
  }
  // One whose prompt is computed up to `computed`.
  static void add_chunk(StepData& d, int slot, int len, int computed, int exact, int draft_rows) {
    add_span(d, slot, len, computed, exact, draft_rows);
  }
  static void add_span(StepData& d, int slot, int len, int computed, int exact, int draft_rows) {
    Ids tokens(static_cast<size_t>(len));
    for (int i = 0; i < len; ++i) tokens[i] = 100 * slot + i;
    d.set_sequence(slot, tokens, computed);
    d.slots[slot].draft.computed = exact;
    for (int i = 0; i < exact; ++i) {
      for (int16_t& count : d.page_header(slot, i).draft_counts) {
        count = static_cast<int16_t>(i % d.sizes.block_size + 1);
      }
    }
    d.slots[slot].num_draft_tokens = 3;
    d.add_span(slot, 1, kMaxDraftTokens, 4, draft_rows);
    d.span_states[d.spans.size() - 1] = SpanState{slot, 0, 1, 0, 0, 0, 0};
  }

  DraftRowsArgs args(int max_rows = kRows, int drafter = 0) {
    out_ = new_draft_tensors(kRows);
    return draft_rows_args(out_, max_rows, drafter);
  }
  // Runs the op, checks everything that follows from its rows and returns them.
  std::vector<Row> run(StepData& d, const DraftRowsArgs& args) {
    draft_rows(queue(), args);
    pull(d);
    pass_ = read_pass(out_, kRows);
    EXPECT_EQ(pass_.counts.num_spans, 0);
    std::vector<Row> rows;
    for (int r = 0; r < pass_.counts.num_rows; ++r) {
      const Row row{pass_.row_slot[r], pass_.positions[r], pass_.token_ids[r]};
      rows.push_back(row);
      EXPECT_EQ(pass_.kv_slot[r], d.kv_slot_of(row.slot, row.position));
      EXPECT_EQ(pass_.source[r], row.position > 0 ? d.kv_slot_of(row.slot, row.position - 1) : 0);
      EXPECT_EQ(pass_.seen[r], std::max(row.position - 1, 0));
    }
    for (int r = pass_.counts.num_rows; r < kRows; ++r) {
      const bool padded = r < args.max_rows;
      EXPECT_EQ(pass_.token_ids[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.positions[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.row_slot[r], padded ? d.sizes.num_slots : -5);
      EXPECT_EQ(pass_.kv_slot[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.source[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.seen[r], padded ? 0 : -5);
    }
    return rows;
  }
  std::vector<Row> run(StepData& d) {
    push(d);
    return run(d, args());
  }
  Ids logits_rows() const {
    return Ids(pass_.logits_rows.begin(), pass_.logits_rows.begin() + pass_.counts.num_logits_rows);
  }
  static Ids counts(StepData& d, int slot, int num_blocks, int drafter = 0) {
    Ids found;
    for (int b = 0; b < num_blocks; ++b) {
      found.push_back(d.page_header(slot, b * d.sizes.block_size).draft_counts[drafter]);
    }
    return found;
  }

  DraftTensors out_{};
  DraftPassData pass_;
};

TEST_F(DraftRowsTest, CatchesUpAndDraftsWhereComplete) {
  StepData d{StepSizes{}};
  add_sampled(d, 1, 7, 5, 2, 9);
  add_sampled(d, 3, 6, 5, 1, 9);
  EXPECT_EQ(run(d), (std::vector<Row>{{1, 5, 105}, {1, 6, 106}, {3, 5, 305}}));
  EXPECT_EQ(logits_rows(), (Ids{1, 2}));
  EXPECT_EQ(d.slots[1].draft.computed, 7);
  EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 2);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 0);
  EXPECT_EQ(d.slots[3].draft.computed, 6);
  EXPECT_EQ(counts(d, 1, 2), (Ids{4, 3}));
}

// Each row changes the drafter's state as well, which stands behind draft.computed.
TEST_F(DraftRowsTest, InOrderExactEntriesAreComputedAgain) {
  StepData d{StepSizes{}};
  add_sampled(d, 1, 7, 6, 0, 9);
  d.slots[1].draft.computed = 4;
  push(d);
  DraftRowsArgs in_order = args();
  in_order.in_order = 1;
  EXPECT_EQ(run(d, in_order), (std::vector<Row>{{1, 4, 104}, {1, 5, 105}, {1, 6, 106}}));
  EXPECT_EQ(d.slots[1].draft.computed, 7);
}

TEST_F(DraftRowsTest, WithoutWantedDraftsEntriesAreCaughtUpOnly) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 7, 2, 0, 9);
  EXPECT_EQ(run(d).size(), 5u);
  EXPECT_EQ(logits_rows(), Ids{});
  EXPECT_EQ(d.slots[0].draft.computed, 7);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 0);
}

TEST_F(DraftRowsTest, ABudgetCutsASpanInTheMiddle) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 9, 2, 3, 4);  // its own bound
  add_sampled(d, 1, 9, 7, 3, 2);
  add_sampled(d, 2, 20, 1, 3, 19);  // what is left
  add_sampled(d, 3, 5, 4, 3, 1);    // nothing is left
  push(d);
  const auto rows = run(d, args(10));
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[3], (Row{0, 5, 5}));
  EXPECT_EQ(rows[5], (Row{1, 8, 108}));
  EXPECT_EQ(rows[9], (Row{2, 4, 204}));
  EXPECT_EQ(logits_rows(), (Ids{5}));
  Ids computed, wanted;
  for (int s = 0; s < 4; ++s) {
    computed.push_back(d.slots[s].draft.computed);
    wanted.push_back(d.slots[s].draft.num_draft_tokens);
    EXPECT_EQ(d.slots[s].num_draft_tokens, 0);
  }
  EXPECT_EQ(computed, (Ids{6, 9, 5, 4}));
  EXPECT_EQ(wanted, (Ids{0, 3, 0, 0}));
  EXPECT_EQ(counts(d, 0, 3), (Ids{4, 2, 0}));
  EXPECT_EQ(counts(d, 2, 3), (Ids{4, 1, 0}));
}

TEST_F(DraftRowsTest, APrefillChunkIsFollowedToWhatIsComputed) {
  StepData d{StepSizes{}};
  add_chunk(d, 0, 12, 5, 3, 9);
  d.slots[0].draft.num_draft_tokens = 2;
  EXPECT_EQ(run(d), (std::vector<Row>{{0, 3, 3}, {0, 4, 4}}));
  EXPECT_EQ(logits_rows(), Ids{});
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 0);
  EXPECT_EQ(d.slots[0].draft.computed, 5);
}

TEST_F(DraftRowsTest, OtherDraftersAndSpansWithoutRowsArePassedOver) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 7, 5, 2, 9);
  add_sampled(d, 1, 7, 5, 2, 9);
  add_sampled(d, 2, 7, 5, 2, 9);
  d.params[1].drafter = 2;
  d.span_states[0].num_rows = d.span_states[0].num_logits = 0;
  push(d);
  const auto rows = run(d, args(kRows, 2));
  EXPECT_EQ(rows, (std::vector<Row>{{1, 5, 105}, {1, 6, 106}}));
  for (const int s : {0, 2}) {
    EXPECT_EQ(d.slots[s].num_draft_tokens, 3);
    EXPECT_EQ(d.slots[s].draft.num_draft_tokens, 2);
    EXPECT_EQ(d.slots[s].draft.computed, 5);
  }
  EXPECT_EQ(counts(d, 1, 2, 2), (Ids{4, 3}));
  EXPECT_EQ(counts(d, 1, 2, 0), (Ids{4, 1}));
  draft_rows(queue(), draft_rows_args(out_, kRows, 0));
  pull(d);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 3) << "it got no rows in this step";
  EXPECT_EQ(d.slots[2].num_draft_tokens, 0);
}

TEST_F(DraftRowsTest, ASequenceThatEndedStillFillsItsBlocks) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 8, 5, 2, 9);
  d.slots[0].finished = static_cast<int32_t>(DeviceFinish::kStop);
  EXPECT_EQ(run(d).size(), 3u);
  EXPECT_EQ(logits_rows(), Ids{});
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 0);
  EXPECT_EQ(counts(d, 0, 2), (Ids{4, 4}));
}

// Four exact entries a block for the first, two for the second; the second drafter has none.
TEST_F(DraftRowsTest, EntriesOfAPrefixHitAreFoundThroughThePages) {
  for (const int drafter : {0, 1}) {
    StepData d{StepSizes{}};
    add_sampled(d, 2, 11, 0, 2, 20);
    d.params[2].drafter = drafter;
    d.page_header(2, 0).draft_counts[0] = 4;
    d.page_header(2, 4).draft_counts[0] = 2;
    d.page_header(2, 8).draft_counts[0] = 3;  // behind a gap
    push(d);
    const auto rows = run(d, args(kRows, drafter));
    EXPECT_EQ(rows.front().position, drafter == 0 ? 6 : 0);
    EXPECT_EQ(rows.back().position, 10);
    EXPECT_EQ(d.slots[2].draft.computed, 11);
    EXPECT_EQ(counts(d, 2, 3, drafter), (Ids{4, 4, 3}));
  }
}

TEST_F(DraftRowsTest, AHitOfEveryFullBlockLeavesTheRest) {
  StepData d{StepSizes{}};
  add_sampled(d, 2, 10, 0, 2, 20);
  d.page_header(2, 0).draft_counts[0] = d.page_header(2, 4).draft_counts[0] = 4;
  EXPECT_EQ(run(d), (std::vector<Row>{{2, 8, 208}, {2, 9, 209}}));
}

// The row of the last token is what drafts come from, so it is computed even if it is there.
TEST_F(DraftRowsTest, TheLastTokenAlwaysHasItsRow) {
  StepData d{StepSizes{}};
  add_sampled(d, 2, 8, 0, 2, 20);
  d.page_header(2, 0).draft_counts[0] = d.page_header(2, 4).draft_counts[0] = 4;
  EXPECT_EQ(run(d), (std::vector<Row>{{2, 7, 207}}));
  EXPECT_EQ(logits_rows(), (Ids{0}));
}

TEST_F(DraftRowsTest, SequencesShareTheEntriesOfTheirBlocks) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 10, 0, 2, 20);
  add_sampled(d, 1, 10, 0, 2, 20);
  add_sampled(d, 2, 10, 2, 2, 20);  // had begun by itself
  for (int slot = 1; slot < 3; ++slot) {
    for (int b = 0; b < 2; ++b) {
      d.block_tables[slot * d.sizes.max_blocks + b] = d.block_tables[b];
    }
  }
  for (int i = 0; i < 8; ++i) d.token(0, i) = i;
  const auto rows = run(d);
  ASSERT_EQ(rows.size(), 14u) << "ten of the first, two of each other";
  EXPECT_EQ(rows[10], (Row{1, 8, 108}));
  EXPECT_EQ(rows[12], (Row{2, 8, 208}));
  EXPECT_EQ(logits_rows(), (Ids{9, 11, 13}));
}

TEST_F(DraftRowsTest, TheFirstEntryMayNotExist) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 3, 0, 2, 20);
  add_chunk(d, 1, 6, 1, 0, 20);
  push(d);
  DraftRowsArgs a = args();
  a.first_entry = 1;
  EXPECT_EQ(run(d, a), (std::vector<Row>{{0, 1, 1}, {0, 2, 2}}));
  EXPECT_EQ(counts(d, 0, 1), (Ids{3})) << "entry 0 counts as exact";
  EXPECT_EQ(d.slots[1].draft.computed, 1);
  EXPECT_EQ(counts(d, 1, 1), (Ids{1}));
}

TEST_F(DraftRowsTest, ADrafterWithoutEntriesHasTheLastTokensThatDraft) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 7, 0, 2, 0);
  add_sampled(d, 1, 9, 0, 0, 0);  // wants nothing
  add_sampled(d, 2, 12, 0, 1, 0);
  add_sampled(d, 3, 5, 0, 3, 0);
  d.slots[3].finished = static_cast<int32_t>(DeviceFinish::kStop);
  push(d);
  DraftRowsArgs a = args();
  a.last_only = 1;
  EXPECT_EQ(run(d, a), (std::vector<Row>{{0, 6, 6}, {2, 11, 211}}));
  EXPECT_EQ(logits_rows(), (Ids{0, 1}));
  Ids wanted;
  for (int s = 0; s < 4; ++s) {
    wanted.push_back(d.slots[s].draft.num_draft_tokens);
    EXPECT_EQ(d.slots[s].num_draft_tokens, 0);
    EXPECT_EQ(d.slots[s].draft.computed, 0);
    EXPECT_EQ(counts(d, s, 2), (Ids{0, 0}));
  }
  EXPECT_EQ(wanted, (Ids{2, 0, 1, 0}));
  for (SlotState& slot : d.slots) slot.draft.num_draft_tokens = 1;
  push(d);
  a = args(1);
  a.last_only = 1;
  a.max_len = 9;
  EXPECT_EQ(run(d, a), (std::vector<Row>{{0, 6, 6}})) << "more rows than there may be";
  EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 0);
  EXPECT_EQ(d.slots[2].draft.num_draft_tokens, 0) << "it is longer than the drafter computes";
}

TEST_F(DraftRowsTest, AChunkOfAPromptDraftsNothingWithoutEntries) {
  StepData d{StepSizes{}};
  add_chunk(d, 0, 12, 5, 0, 0);
  d.slots[0].draft.num_draft_tokens = 2;
  push(d);
  DraftRowsArgs a = args();
  a.last_only = 1;
  EXPECT_EQ(run(d, a), std::vector<Row>{});
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 0);
}

TEST_F(DraftRowsTest, PositionsBeyondTheDrafterAreLeftOut) {
  for (const auto& [max_len, rows, drafts] :
       {std::tuple{8, 4, 0}, {9, 5, 0}, {10, 6, 1}, {3, 0, 0}}) {
    StepData d{StepSizes{}};
    add_sampled(d, 0, 10, 4, 2, 20);
    push(d);
    DraftRowsArgs a = args();
    a.max_len = max_len;
    EXPECT_EQ(run(d, a).size(), static_cast<size_t>(rows)) << max_len;
    EXPECT_EQ(d.slots[0].draft.computed, 4 + rows);
    EXPECT_EQ(pass_.counts.num_logits_rows, drafts);
    EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 2 * drafts);
  }
}

TEST_F(DraftRowsTest, IdsOfAnotherVocabularyComeFromTheMap) {
  StepData d{StepSizes{}};
  add_sampled(d, 0, 5, 2, 1, 9);
  push(d);
  DraftRowsArgs a = args();
  Ids map(500);
  for (int i = 0; i < 500; ++i) map[i] = i == 3 ? -1 : 1000 - i;
  a.token_map = to_device(map);
  EXPECT_EQ(run(d, a), (std::vector<Row>{{0, 2, 998}, {0, 3, -1}, {0, 4, 996}}));
}

TEST_F(DraftRowsTest, RandomBatchesMatchAPlainReference) {
  std::mt19937 random(8);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < thinned(150); ++round) {
    StepData d{StepSizes{}};
    const int drafter = below(2), first_entry = below(2), max_len = 8 + below(30);
    for (PageHeader& page : d.page_headers) {
      for (int16_t& count : page.draft_counts) {
        count = static_cast<int16_t>(below(3) == 0 ? below(5) : 4);
      }
    }
    for (int s = 0; s < 4; ++s) {
      const int len = 2 + below(29);
      const bool sampled = below(3) > 0;
      const int computed = sampled ? len - 1 : 1 + below(len - 1);
      add_span(d, s, len, computed, below(2) * below(computed + 1), below(10));
      d.slots[s].draft.num_draft_tokens = below(4);
      d.slots[s].finished = below(6) == 0 ? 1 : 0;
      d.params[s].drafter = below(4) == 0 ? 1 : 0;
      SpanState& span = d.span_states[s];
      span.num_scored = below(3);
      span.num_logits = span.num_scored + (sampled ? 1 + below(3) : 0);
      if (below(8) == 0) span = SpanState{s, 0, 0, 0, 0, 0, 0};
    }
    d.block_tables[d.sizes.max_blocks] = d.block_tables[0];  // slots 0 and 1 share their first
    StepData want = d;
    std::vector<Row> rows;
    Ids logits;
    const int max_rows = 4 + below(21);
    for (int i = 0; i < 4; ++i) {
      const SpanState& span = d.span_states[i];
      SlotState& s = want.slots[i];
      if (want.params[i].drafter != drafter || span.num_rows == 0) continue;
      const bool sampled = span.num_logits > span.num_scored;
      const int known = sampled ? s.len : s.computed, end = std::min(known, max_len);
      int at = std::max(s.draft.computed, std::min(first_entry, end));
      while (at < std::min(end, sampled ? s.len - 1 : end) &&
             want.page_header(i, at).draft_counts[drafter] > at % 4) {
        ++at;
      }
      int added = 0;
      while (at < end && added < d.spans[i].draft_rows &&
             static_cast<int>(rows.size()) < max_rows) {
        rows.push_back({i, at, want.token(i, at)});
        ++at;
        ++added;
      }
      for (int p = s.draft.computed; p < at; ++p) {
        int16_t& count = want.page_header(i, p).draft_counts[drafter];
        count = std::max<int16_t>(count, static_cast<int16_t>(p % 4 + 1));
      }
      s.draft.computed = at;
      s.num_draft_tokens = 0;
      if (sampled && s.finished == 0 && s.draft.num_draft_tokens > 0 && at == s.len && added > 0) {
        logits.push_back(static_cast<int32_t>(rows.size()) - 1);
      } else {
        s.draft.num_draft_tokens = 0;
      }
    }
    push(d);
    DraftRowsArgs a = args(max_rows, drafter);
    a.first_entry = first_entry;
    a.max_len = max_len;
    ASSERT_EQ(run(d, a), rows) << "round " << round;
    ASSERT_EQ(logits_rows(), logits);
    for (int s = 0; s < 4; ++s) {
      ASSERT_EQ(std::memcmp(&d.slots[s], &want.slots[s], sizeof(SlotState)), 0)
          << round << " " << s;
    }
    for (size_t b = 0; b < d.page_headers.size(); ++b) {
      ASSERT_TRUE(std::equal(std::begin(d.page_headers[b].draft_counts),
                             std::end(d.page_headers[b].draft_counts),
                             want.page_headers[b].draft_counts))
          << "round " << round << " block " << b;
    }
  }
}

}  // namespace
}  // namespace foretoken
