#include "kernels/draft/suffix.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;
using suffix_table::Entry;

constexpr int kDepth = 8;  // levels of 8, 4 and 2 tokens
constexpr int32_t kMinChance = 6553;

// The table as a map without bounds.
class Reference {
 public:
  void learn(const SlotParams& params, const Ids& t, int begin) {
    for (size_t p = static_cast<size_t>(begin); p < t.size(); ++p) {
      for (const size_t n : {8, 4, 2}) {
        if (n > p) continue;
        Entry fresh{};
        fresh.ids[0] = t[p];
        fresh.ids[1] = -1;
        Entry& entry = entries_.try_emplace(key(params, Ids(t.begin(), t.begin() + p), n), fresh)
                           .first->second;
        suffix_table::note(entry, t[p], 1);
      }
    }
  }

  // What suffix.h says, over plain vectors; `is_predicted` tells whose the drafts are.
  Ids drafts(const SlotParams& params, const Ids& t, const Ids& prediction, int wanted,
             bool* is_predicted) const {
    size_t matched = 0;
    const Ids from_table = walk(params, t, wanted, &matched);
    const auto [place, predicted] = predicted_place(t, prediction, params.prompt_len);
    const auto [own, own_length] = own_place(t);
    *is_predicted = false;
    if (own_length > std::max(predicted, matched)) {
      Ids drafts;
      for (size_t i = 0; i < std::min<size_t>(static_cast<size_t>(wanted), own_length); ++i) {
        const size_t from = own + 1 + i;
        drafts.push_back(from < t.size() ? t[from] : drafts[from - t.size()]);
      }
      return drafts;
    }
    if (predicted == 0 || predicted < matched) return from_table;
    *is_predicted = true;
    const size_t count = std::min(static_cast<size_t>(wanted), prediction.size() - place);
    return {prediction.begin() + static_cast<int64_t>(place),
            prediction.begin() + static_cast<int64_t>(place + count)};
  }

 private:
  using Key = std::tuple<uint64_t, int32_t, Ids>;

  static Key key(const SlotParams& params, const Ids& t, size_t n) {
    return {params.cache_salt, params.adapter_number,
            Ids(t.end() - static_cast<int64_t>(n), t.end())};
  }

  static size_t common(const Ids& a, size_t a_len, const Ids& b, size_t b_len, size_t most) {
    size_t n = 0;
    while (n < most && n < a_len && n < b_len && a[a_len - 1 - n] == b[b_len - 1 - n]) ++n;
    return n;
  }

  // The position behind which the text goes on as its end does, and the tokens of that.
  static std::pair<size_t, size_t> own_place(const Ids& t) {
    std::pair<size_t, size_t> best{0, 0};
    for (size_t j = 0; j + 1 < t.size(); ++j) {
      const size_t n = common(t, j + 1, t, t.size(), kDepth);
      if (n >= 2 && n >= best.second) best = {j, n};
    }
    return best;
  }

  static std::pair<size_t, size_t> predicted_place(const Ids& t, const Ids& prediction,
                                                   int32_t prompt_len) {
    Ids u(t.begin(), t.begin() + prompt_len);
    u.insert(u.end(), prediction.begin(), prediction.end());
    std::pair<size_t, size_t> best{0, 0};
    size_t distance = 0;
    for (size_t end = static_cast<size_t>(prompt_len); end < u.size(); ++end) {
      const size_t n = common(u, end, t, t.size(), 32);
      const size_t far = end > t.size() ? end - t.size() : t.size() - end;
      if (n < 2 || n < best.second || (n == best.second && far > distance)) continue;
      best = {end - static_cast<size_t>(prompt_len), n};
      distance = far;
    }
    return best;
  }

  Ids walk(const SlotParams& params, Ids t, int wanted, size_t* matched) const {
    Ids drafts;
    int64_t chance = 65535;
    while (static_cast<int>(drafts.size()) < wanted) {
      const Entry* entry = nullptr;
      size_t tokens = 0;
      for (const size_t n : {8, 4, 2}) {
        if (entry != nullptr || n > t.size()) continue;
        const auto found = entries_.find(key(params, t, n));
        if (found == entries_.end()) continue;
        entry = &found->second;
        tokens = n;
      }
      if (entry == nullptr) break;
      chance = chance * suffix_table::chance_of(*entry, static_cast<int32_t>(tokens)) / 65535;
      if (chance < kMinChance) break;
      if (*matched == 0) {
        *matched = tokens;
        wanted = std::min(wanted, static_cast<int>(tokens));
      }
      drafts.push_back(entry->ids[0]);
      t.push_back(entry->ids[0]);
    }
    return drafts;
  }

  std::map<Key, Entry> entries_;
};

class SuffixTest : public StepTest {
 protected:
  void SetUp() override {
    StepTest::SetUp();
    if (IsSkipped()) return;
    table_.num_buckets = 1 << 17;  // so many that nothing has to go
    table_.entries = allocate<Entry>(size_t{table_.num_buckets} * suffix_table::kWays);
    table_.clock = allocate<uint32_t>(1);
    table_.max_age = 10000;
  }

  SuffixArgs args(int num_draft_tokens, int drafter = 0) const {
    return {plan_,   sizes_.limits, batch_, tensors_.spans, table_, num_draft_tokens,
            drafter, kDepth,        1.0f,   min_chance_,    1 << 20};
  }
  uint32_t clock() { return read(table_.clock, 1)[0]; }
  std::vector<Entry> entries() {
    return read(table_.entries, size_t{table_.num_buckets} * suffix_table::kWays);
  }

  // A slot whose text is known up to its end, of which `learnt` tokens were learnt, and its span.
  static void add_text(StepData& d, int slot, const Ids& t, int prompt_len, int learnt,
                       int wanted = 16) {
    d.set_sequence(slot, t, static_cast<int>(t.size()) - 1);
    SlotState& state = d.slots[static_cast<size_t>(slot)];
    state.draft.computed = learnt;
    state.draft.num_draft_tokens = wanted;
    state.num_draft_tokens = 9;
    state.from_prediction = 7;
    d.params[static_cast<size_t>(slot)].prompt_len = prompt_len;
    const size_t span = d.spans.size();
    d.add_span(slot, 1, 4);
    d.span_states[span] = SpanState{};
    d.span_states[span].slot = slot;
    d.span_states[span].num_logits = 1;
  }
  void run(StepData& d, int num_draft_tokens = 16) {
    push(d);
    suffix(queue(), args(num_draft_tokens));
    pull(d);
  }
  static Ids drafts_of(const StepData& d, int slot) {
    const SlotState& state = d.slots[static_cast<size_t>(slot)];
    return {state.drafts, state.drafts + state.num_draft_tokens};
  }
  // The drafts of a text of another sequence that learns nothing new.
  Ids drafts_for(const Ids& t, uint64_t salt = 0, int32_t adapter = 0) {
    StepData d{StepSizes{}};
    add_text(d, 1, t, static_cast<int>(t.size()), static_cast<int>(t.size()));
    d.params[1].cache_salt = salt;
    d.params[1].adapter_number = adapter;
    run(d);
    return drafts_of(d, 1);
  }
  // An answer [prompt_len, ...) becomes known.
  void learn(const Ids& t, int prompt_len, uint64_t salt = 0, int32_t adapter = 0) {
    StepData d{StepSizes{}};
    add_text(d, 2, t, prompt_len, 0);
    d.params[2].cache_salt = salt;
    d.params[2].adapter_number = adapter;
    run(d, 0);
    EXPECT_EQ(d.slots[2].draft.computed, static_cast<int32_t>(t.size()));
  }

  suffix_table::Table table_{};
  int32_t min_chance_ = kMinChance;
};

TEST_F(SuffixTest, PastAnswersAreDrafted) {
  learn({1, 2, 3, 4, 5, 6, 7, 8, 9}, 2);
  EXPECT_EQ(clock(), 1u);
  EXPECT_EQ(drafts_for({30, 1, 2}), (Ids{3, 4})) << "two tokens are known, so two are drafted";
  EXPECT_EQ(drafts_for({30, 1, 2, 3, 4}), (Ids{5, 6, 7, 8}));
  EXPECT_EQ(drafts_for({30, 2, 1}), Ids{});
  EXPECT_EQ(drafts_for({30, 8, 9}), Ids{}) << "nothing came behind";
  EXPECT_EQ(drafts_for({30, 0, 1}), Ids{}) << "prompts are not kept";
}

TEST_F(SuffixTest, WhatFollowsLessOftenEndsTheDrafts) {
  min_chance_ = 65535 / 4;
  for (const int32_t next : {50, 51, 52, 53, 54, 55, 56, 57}) learn({1, 2, 3, next, next + 1}, 2);
  const Ids drafts = drafts_for({30, 1, 2});
  EXPECT_EQ(drafts, Ids{3}) << "eight tokens followed it, none of them likely";
}

TEST_F(SuffixTest, OtherOwnersTextsAreNeverDrafted) {
  learn({1, 2, 3, 4, 5, 6, 7, 8, 9}, 2, 11);
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 11), (Ids{5, 6, 7, 8}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4}), Ids{});
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 13), Ids{});
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 11, 1), Ids{});
  learn({1, 2, 3, 4, 25, 26, 27, 28}, 2, 13);
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 13), (Ids{25, 26, 27, 28}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 11), (Ids{5, 6, 7, 8}));
}

TEST_F(SuffixTest, WithoutATableTheOwnTextIsDrafted) {
  learn({1, 2, 3, 4, 5, 6, 7, 8, 9}, 2);
  table_ = {};
  EXPECT_EQ(drafts_for({1, 2, 3, 4}), Ids{});
  EXPECT_EQ(drafts_for({5, 6, 7, 8, 9, 5, 6, 7}), (Ids{8, 9, 5}));
}

TEST_F(SuffixTest, TheLongerSuffixGoesBefore) {
  learn({1, 2, 3, 4, 5, 6, 7}, 2);
  EXPECT_EQ(drafts_for({9, 3, 4, 40, 3, 4}), (Ids{5, 6})) << "two tokens each: past answers";
  EXPECT_EQ(drafts_for({2, 3, 4, 40, 41, 2, 3, 4}), (Ids{40, 41, 2})) << "three of the own text";
  EXPECT_EQ(drafts_for({9, 1, 2, 3, 4, 40, 9, 1, 2, 3, 4}), (Ids{40, 9, 1, 2, 3}))
      << "four of a past answer, five of the own text";
}

TEST_F(SuffixTest, RespectsTheBoundsOfTheSlot) {
  learn({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2);
  const auto drafted = [&](int wanted, int k, DeviceFinish finished, int computed) {
    StepData d{StepSizes{}};
    add_text(d, 1, {1, 2, 3, 4, 5, 6, 7, 8}, 8, 8, wanted);
    d.slots[1].finished = static_cast<int32_t>(finished);
    d.slots[1].computed = computed;
    run(d, k);
    EXPECT_EQ(d.slots[1].from_prediction, 0);
    return d.slots[1].num_draft_tokens;
  };
  EXPECT_EQ(drafted(16, 16, DeviceFinish::kNone, 7), 4);
  EXPECT_EQ(drafted(3, 16, DeviceFinish::kNone, 7), 3);
  EXPECT_EQ(drafted(16, 2, DeviceFinish::kNone, 7), 2);
  EXPECT_EQ(drafted(0, 16, DeviceFinish::kNone, 7), 0);
  EXPECT_EQ(drafted(16, 16, DeviceFinish::kStop, 7), 0);
  EXPECT_EQ(drafted(16, 16, DeviceFinish::kNone, 6), 0) << "prompt tokens are missing";
  EXPECT_EQ(drafted(16, 0, DeviceFinish::kNone, 7), 0) << "a step that only learns";
}

TEST_F(SuffixTest, ALongPieceWakesWhatRests) {
  learn({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2);
  // What is found and drafted where choose_lengths chose no drafts.
  const auto woken = [&](const Ids& t, int granted, uint64_t salt = 0, int max_draft_tokens = 16) {
    StepData d{StepSizes{}};
    add_text(d, 1, t, static_cast<int>(t.size()), static_cast<int>(t.size()), 0);
    d.spans[0].num_draft_tokens = granted;
    d.slots[1].found_by = 3;
    d.params[1].cache_salt = salt;
    d.params[1].max_draft_tokens = max_draft_tokens;
    run(d, granted);
    EXPECT_EQ(d.slots[1].draft.num_draft_tokens, d.slots[1].num_draft_tokens);
    return std::pair(d.slots[1].found_by, d.slots[1].num_draft_tokens);
  };
  const Ids piece = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(woken(piece, 0), std::pair(1, 0)) << "it is told, and nothing is drafted yet";
  EXPECT_EQ(woken(piece, 3), std::pair(1, 3));
  EXPECT_EQ(woken(piece, 3, 0, 2), std::pair(1, 2));
  EXPECT_EQ(woken(piece, 3, 0, 0), std::pair(0, 0)) << "it opted out";
  EXPECT_EQ(woken(piece, 3, 11), std::pair(0, 0)) << "another owner's";
  EXPECT_EQ(woken({30, 5, 6, 7, 8}, 3), std::pair(0, 0)) << "a short piece";
  for (int i = 0; i < 4; ++i) learn({1, 2, 3, 4, 5, 6, 7, 8, 20 + i}, 8);
  EXPECT_EQ(woken(piece, 3), std::pair(0, 0)) << "who knows what follows";
}

TEST_F(SuffixTest, APreemptedSequenceIsLearntOnce) {
  Ids text = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  learn(text, 2);
  const std::vector<Entry> before = entries();
  for (const int new_tokens : {0, 1}) {
    StepData d{StepSizes{}};
    text.resize(9 + static_cast<size_t>(new_tokens), 10);
    add_text(d, 2, text, 2, 0);
    d.slots[2].learnt = 9;
    run(d, 0);
    EXPECT_EQ(clock(), 1u) << "it had begun";
    const std::vector<Entry> after = entries();
    const auto differs = [](const Entry& a, const Entry& b) { return a.seen != b.seen; };
    int changed = 0;
    for (size_t i = 0; i < after.size(); ++i) changed += differs(after[i], before[i]) ? 1 : 0;
    EXPECT_EQ(changed, 3 * new_tokens) << "pieces of 8, 4 and 2 tokens";
  }
}

TEST_F(SuffixTest, LearnsWhatIsNewOnceAndLeavesOtherDraftersAlone) {
  StepData d{StepSizes{}};
  add_text(d, 0, {1, 2, 3, 4, 5}, 2, 0);
  add_text(d, 1, {1, 2, 13, 14, 15}, 2, 0);
  add_text(d, 2, {1, 2, 23, 24, 25}, 2, 4);
  add_text(d, 3, {6, 7, 8, 9}, 4, 0);
  d.params[1].drafter = 1;
  d.slots[0].finished = static_cast<int32_t>(DeviceFinish::kStop);
  run(d, 4);
  EXPECT_EQ(d.slots[0].draft.computed, 5) << "the last tokens of a finished text too";
  EXPECT_EQ(d.slots[1].draft.computed, 0);
  EXPECT_EQ(d.slots[2].draft.computed, 5);
  EXPECT_EQ(d.slots[3].draft.computed, 0) << "it has only a prompt";
  EXPECT_EQ(d.slots[1].num_draft_tokens, 9);
  EXPECT_EQ(clock(), 1u) << "one text began";
  EXPECT_EQ(drafts_for({30, 1, 2}), (Ids{3, 4}));
  EXPECT_EQ(drafts_for({30, 2, 23}), Ids{}) << "that was learnt before";
  EXPECT_EQ(drafts_for({30, 23, 24}), Ids{25});
  // A prompt of which a part is computed.
  d = StepData{StepSizes{}};
  add_text(d, 1, {1, 2, 3, 41, 42, 43}, 2, 0);
  d.slots[1].computed = 4;
  d.span_states[0].num_logits = 0;
  run(d, 4);
  EXPECT_EQ(d.slots[1].draft.computed, 4);
}

TEST_F(SuffixTest, RandomTextsMatchAPlainReference) {
  std::mt19937 random(9);
  Reference reference;
  int drafted = 0, predicted = 0;
  for (int round = 0; round < 150; ++round) {
    StepData d{StepSizes{}};
    std::vector<Ids> text(4), prediction(4);
    const int k = 1 + static_cast<int>(random() % 16);
    for (int s = 0; s < 4; ++s) {
      text[s].resize(2 + random() % 29);
      for (size_t i = 0; i < text[s].size(); ++i) {
        // Mostly the continuation that each pair has.
        const int32_t next = i < 2 ? 0 : (text[s][i - 2] * 3 + text[s][i - 1] * 5 + 1) % 7;
        text[s][i] = i < 2 || random() % 8 == 0 ? static_cast<int32_t>(random() % 7) : next;
      }
      const int prompt_len = 1 + static_cast<int>(random() % (text[s].size() - 1));
      add_text(d, s, text[s], prompt_len, 0, static_cast<int>(random() % 17));
      d.params[s].cache_salt = random() % 3 == 0 ? 11 : 0;
      d.params[s].adapter_number = random() % 4 == 0 ? 1 : 0;
      if (random() % 3 == 0) {
        prediction[s].resize(random() % 32);
        for (int32_t& id : prediction[s]) id = static_cast<int32_t>(random() % 7);
        d.set_prediction(s, prediction[s]);
      }
    }
    std::vector<SlotParams> params(d.params.begin(), d.params.begin() + 4);
    std::vector<int> wanted(4);
    for (int s = 0; s < 4; ++s) wanted[s] = std::min(k, d.slots[s].draft.num_draft_tokens);
    run(d, k);
    for (int s = 0; s < 4; ++s) reference.learn(params[s], text[s], params[s].prompt_len);
    for (int s = 0; s < 4; ++s) {
      bool is_predicted = false;
      const Ids expected = wanted[s] == 0 ? Ids{}
                                          : reference.drafts(params[s], text[s], prediction[s],
                                                             wanted[s], &is_predicted);
      ASSERT_EQ(drafts_of(d, s), expected) << "round " << round << " slot " << s;
      ASSERT_EQ(d.slots[s].from_prediction, is_predicted ? 1 : 0);
      drafted += static_cast<int>(expected.size());
      predicted += is_predicted ? 1 : 0;
    }
  }
  EXPECT_EQ(clock(), 600u);
  EXPECT_GT(drafted, 500);
  EXPECT_GT(predicted, 5);
}

// Equal steps in an equal order leave equal tables, whatever ran the proposals.
TEST_F(SuffixTest, TheTableFollowsFromTheOrderOfTheSteps) {
  const auto table_after = [&] {
    std::mt19937 random(4);
    write(table_.entries, std::vector<Entry>(size_t{table_.num_buckets} * suffix_table::kWays));
    write(table_.clock, std::vector<uint32_t>(1));
    for (int round = 0; round < 30; ++round) {
      StepData d{StepSizes{}};
      for (int s = 0; s < 4; ++s) {
        Ids text(3 + random() % 28);
        for (int32_t& id : text) id = static_cast<int32_t>(random() % 3);
        add_text(d, s, text, 1, 0);
      }
      run(d, static_cast<int>(random() % 17));
    }
    const auto entries = read(table_.entries, size_t{table_.num_buckets} * suffix_table::kWays);
    return std::string(reinterpret_cast<const char*>(entries.data()),
                       entries.size() * sizeof(Entry));
  };
  const std::string once = table_after();
  EXPECT_TRUE(once == table_after());
}

}  // namespace
}  // namespace foretoken
