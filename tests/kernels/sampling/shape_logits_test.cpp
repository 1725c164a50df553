#include "kernels/sampling/shape_logits.h"

#include <cmath>
#include <limits>
#include <random>

#include "support/random_data.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;
constexpr float kShapeLogitsInf = std::numeric_limits<float>::infinity();

// The history of the row at a position: known tokens, then drafts.
Ids history_of(StepData& d, int slot, int position) {
  Ids ids = d.tokens(slot);
  const SlotState& state = d.slots[static_cast<size_t>(slot)];
  ids.insert(ids.end(), state.drafts, state.drafts + state.num_draft_tokens);
  ids.resize(static_cast<size_t>(position + 1));
  return ids;
}

void mask_bad_words(const StepData& d, int slot, const Ids& history, std::vector<float>& logits) {
  const int32_t prompt_len = d.params[static_cast<size_t>(slot)].prompt_len;
  const Ids output(history.begin() + std::min<int64_t>(prompt_len, std::ssize(history)),
                   history.end());
  const int32_t* ints = &d.bad_words[static_cast<size_t>(slot) * kMaxBadWordInts];
  const int32_t* end = ints + d.params[static_cast<size_t>(slot)].num_bad_word_ints;
  while (ints < end) {
    Ids word(ints + 1, ints + 1 + *ints);
    ints += 1 + *ints;
    const int32_t last = word.back();
    word.pop_back();
    const bool ends =
        word.size() <= output.size() && std::equal(word.rbegin(), word.rend(), output.rbegin());
    if (ends && last < static_cast<int>(logits.size()))
      logits[static_cast<size_t>(last)] = -kShapeLogitsInf;
  }
}

// kernels/sampling/shape_logits.h, rule by rule and one id after the other.
void shape_reference(const StepData& d, int slot, const Ids& history, std::vector<float>& logits) {
  const SlotParams& p = d.params[static_cast<size_t>(slot)];
  const int words = (d.sizes.vocab + 31) / 32;
  const int vocab = static_cast<int>(logits.size());
  for (int id = 0; id < vocab && p.has_allowed_ids != 0; ++id) {
    const uint32_t word = d.allowed_ids[static_cast<size_t>(slot * words + id / 32)];
    if ((word >> (id % 32) & 1) == 0) logits[static_cast<size_t>(id)] = -kShapeLogitsInf;
  }
  mask_bad_words(d, slot, history, logits);
  for (int i = 0; i < p.num_logit_bias; ++i) {
    const LogitBias& bias = d.logit_bias[static_cast<size_t>(slot * kMaxLogitBias + i)];
    if (bias.id < vocab) logits[static_cast<size_t>(bias.id)] += bias.bias;
  }
  for (int id = 0; id < vocab; ++id) {
    float& l = logits[static_cast<size_t>(id)];
    const auto in_history = std::count(history.begin(), history.end(), id);
    const auto output = history.begin() + std::min<int64_t>(p.prompt_len, std::ssize(history));
    const auto in_output = std::count(output, history.end(), id);
    if (p.repetition_penalty != 1 && in_history > 0) {
      l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
    }
    if (in_output > 0 && p.presence_penalty != 0) l -= p.presence_penalty;
    for (int i = 0; i < in_output && p.frequency_penalty != 0; ++i) l -= p.frequency_penalty;
  }
}

class ShapeLogitsTest : public StepTest {
 protected:
  // Shapes the live rows in tiles of `tile` rows and compares the bits of all of them.
  void expect_shaped(StepData& d, std::vector<float> logits, int tile) {
    const size_t vocab = static_cast<size_t>(d.sizes.vocab);
    const size_t mask_words = (vocab + 31) / 32;
    run_prepare(d);
    ASSERT_GT(d.counts.num_logits_rows, 0);
    logits.resize(static_cast<size_t>(d.sizes.max_logits_rows) * vocab, 0.75f);
    auto* seen = to_device(std::vector<uint32_t>(static_cast<size_t>(tile) * 2 * mask_words, ~0u));
    for (int offset = 0; offset < d.sizes.max_logits_rows; offset += tile) {
      const int rows = std::min(tile, d.sizes.max_logits_rows - offset);
      const auto begin = logits.begin() + offset * d.sizes.vocab;
      const std::vector<float> before(begin, begin + rows * d.sizes.vocab);
      float* memory = to_device(before);
      shape_logits(queue(), {memory, tensors_, batch_, seen, offset, rows, d.sizes.vocab});
      const auto got = read(memory, before.size());
      for (int i = 0; i < rows; ++i) {
        const auto row = before.begin() + i * d.sizes.vocab;
        std::vector<float> want(row, row + d.sizes.vocab);
        expect_row(d, offset + i, std::move(want), &got[static_cast<size_t>(i) * vocab]);
      }
    }
  }

  void expect_row(StepData& d, int index, std::vector<float> want, const float* got) {
    if (index < d.counts.num_logits_rows) {
      const int row = d.logits_rows[static_cast<size_t>(index)];
      const int slot = d.row_slot[static_cast<size_t>(row)];
      const int position = d.positions[static_cast<size_t>(row)];
      if (position + 1 >= d.slots[static_cast<size_t>(slot)].len) {
        shape_reference(d, slot, history_of(d, slot, position), want);
      }
    }
    for (size_t id = 0; id < want.size(); ++id) {
      ASSERT_EQ(std::memcmp(&got[id], &want[id], sizeof(float)), 0)
          << "logits row " << index << " id " << id << ": " << got[id] << ", not " << want[id];
    }
  }

  static StepSizes sizes_for(int vocab) {
    StepSizes sizes;
    sizes.vocab = vocab;
    sizes.max_logits_rows = 24;
    return sizes;
  }
};

int below(std::mt19937& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// Ids from few values, so that they repeat; now and then the last of the vocabulary.
Ids random_ids(std::mt19937& random, int count, int vocab) {
  Ids ids(static_cast<size_t>(count));
  for (int32_t& id : ids)
    id = below(random, 6) == 0 ? vocab - 1 : below(random, std::min(vocab, 9));
  return ids;
}

void set_random_lists(std::mt19937& random, StepData& d, int slot) {
  const int vocab = d.sizes.vocab;
  if (below(random, 2) == 0) {
    Ids allowed = {vocab - 1};
    for (int id = 0; id < vocab; ++id) {
      if (below(random, 3) != 0) allowed.push_back(id);
    }
    d.set_allowed_ids(slot, allowed);
  }
  if (below(random, 2) == 0) {
    std::vector<Ids> words;
    for (int i = below(random, 40); i >= 0; --i) {
      words.push_back(random_ids(random, 1 + below(random, i % 7 == 0 ? 60 : 4), vocab));
    }
    d.set_bad_words(slot, words);
  }
  if (below(random, 2) == 0) {
    std::vector<LogitBias> biases;
    for (int id = 0; id < vocab; id += 1 + below(random, 9)) {
      biases.push_back({id, static_cast<float>(below(random, 200) - 100) * 0.37f});
    }
    d.set_logit_bias(slot, biases);
  }
}

void set_random_penalties(std::mt19937& random, SlotParams& p, int len) {
  const auto one_of = [&](std::initializer_list<float> values) {
    return values.begin()[below(random, static_cast<int>(values.size()))];
  };
  p.repetition_penalty = one_of({1.0f, 1.0f, 1.3f, 0.7f, 2.0f});
  p.presence_penalty = one_of({0.0f, 0.0f, 0.6f, -1.1f, 2.0f});
  p.frequency_penalty = one_of({0.0f, 0.0f, 0.1f, -0.3f, 1.7f});
  p.prompt_len = below(random, len + 1);
}

std::vector<float> random_logits(std::mt19937& random, size_t count) {
  std::vector<float> logits = random_floats(count, random(), 4.0f);
  for (float& l : logits) {
    if (below(random, 20) == 0) l = -kShapeLogitsInf;
    if (below(random, 20) == 0) l = below(random, 2) == 0 ? 0.0f : -0.0f;
  }
  return logits;
}

// Every combination of the rules, with drafts in flight and with rows whose next token is known.
TEST_F(ShapeLogitsTest, RandomBatchesHaveTheBitsOfThePlainRules) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const int vocab = round % 3 == 0 ? 64 : round % 3 == 1 ? 77 : 5;
    StepData d{sizes_for(vocab)};
    for (int s = 0; s < 4; ++s) {
      const Ids ids = random_ids(random, 1 + below(random, 26), vocab);
      const bool wants_all = below(random, 5) == 0;
      const int len = static_cast<int>(ids.size());
      d.set_sequence(s, ids, wants_all ? std::max(0, len - 3) : len - 1);
      d.set_drafts(s, random_ids(random, below(random, 4), vocab));
      set_random_lists(random, d, s);
      set_random_penalties(random, d.params[static_cast<size_t>(s)], len);
      d.params[static_cast<size_t>(s)].processors = random() % 2;
      d.add_span(s, 3, below(random, 4));
      d.spans.back().wants_all = wants_all ? 1 : 0;
    }
    const auto logits = random_logits(random, static_cast<size_t>(24 * vocab));
    expect_shaped(d, logits, round % 2 == 0 ? 24 : 5);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST_F(ShapeLogitsTest, RowsWithoutShapingStayAsTheyAre) {
  StepData d{sizes_for(40)};
  d.set_sequence(0, {1, 2, 1}, 2);
  d.params[0].prompt_len = 1;
  d.set_allowed_ids(0, {3});
  d.params[0].has_allowed_ids = 0;  // the lists of a request before it are still there
  d.set_bad_words(0, {{7}});
  d.params[0].num_bad_word_ints = 0;
  d.set_logit_bias(0, {{5, 3.0f}});
  d.params[0].num_logit_bias = 0;
  d.add_span(0, 1, 0);
  expect_shaped(d, random_floats(40, 1), 24);
}

// As with vLLM: what the prompt ends in does not begin a word.
TEST_F(ShapeLogitsTest, BadWordsBeginInTheOutput) {
  StepData d{sizes_for(33)};
  d.set_sequence(0, {4, 5, 6}, 2);
  d.params[0].prompt_len = 2;
  d.set_bad_words(0, {{5, 6, 9}, {6, 10}, {11}});
  d.add_span(0, 1, 0);
  run_prepare(d);
  auto* logits = to_device(std::vector<float>(33, 1.0f));
  auto* seen = allocate<uint32_t>(2 * 2);
  shape_logits(queue(), {logits, tensors_, batch_, seen, 0, 1, 33});
  const auto got = read(logits, 33);
  Ids found;
  for (int id = 0; id < 33; ++id) {
    if (got[static_cast<size_t>(id)] == -kShapeLogitsInf) found.push_back(id);
  }
  EXPECT_EQ(found, (Ids{10, 11}));
}

// A word of one id is never sampled; a longer one needs its beginning, also through the drafts.
TEST_F(ShapeLogitsTest, BadWordsFollowTheDrafts) {
  StepData d{sizes_for(33)};
  d.set_sequence(1, {4, 5}, 1);
  d.set_drafts(1, {6, 7});
  d.set_bad_words(1, {{32}, {5, 6, 9}, {6, 7, 10}, {1, 2, 3, 4, 4, 5, 11}, {4, 5, 12}});
  d.add_span(1, 1, 4);
  run_prepare(d);
  ASSERT_EQ(d.counts.num_logits_rows, 3);
  auto* logits = to_device(std::vector<float>(3 * 33, 1.0f));
  auto* seen = allocate<uint32_t>(3 * 2 * 2);
  shape_logits(queue(), {logits, tensors_, batch_, seen, 0, 3, 33});
  const auto got = read(logits, 3 * 33);
  const std::vector<Ids> masked = {{12, 32}, {9, 32}, {10, 32}};
  for (int row = 0; row < 3; ++row) {
    Ids found;
    for (int id = 0; id < 33; ++id) {
      if (got[static_cast<size_t>(row * 33 + id)] == -kShapeLogitsInf) found.push_back(id);
    }
    EXPECT_EQ(found, masked[static_cast<size_t>(row)]) << row;
  }
}

TEST_F(ShapeLogitsTest, ABiasCannotBringAMaskedIdBack) {
  StepData d{sizes_for(35)};
  d.set_sequence(0, {1}, 0);
  d.set_allowed_ids(0, {34});
  d.set_logit_bias(0, {{0, 100.0f}, {34, -5.0f}});
  d.add_span(0, 1, 0);
  expect_shaped(d, std::vector<float>(35, 2.0f), 24);
}

TEST_F(ShapeLogitsTest, AllMaskedAndAllMinusInfStayMinusInf) {
  StepData d{sizes_for(50)};
  d.set_sequence(0, {1, 49, 49}, 2);
  d.set_allowed_ids(0, {});
  d.set_sequence(1, {49, 2, 2}, 2);
  for (int s = 0; s < 2; ++s) {
    d.params[static_cast<size_t>(s)].repetition_penalty = 1.5f;
    d.params[static_cast<size_t>(s)].presence_penalty = -1.0f;
    d.params[static_cast<size_t>(s)].frequency_penalty = 0.5f;
    d.add_span(s, 1, 0);
  }
  std::vector<float> logits(50, 1.0f);
  logits.resize(100, -kShapeLogitsInf);
  expect_shaped(d, logits, 24);
}

// Long outputs: many repetitions of few ids, and so many different ids that they are counted in
// several parts. The order of the subtractions shows in the bits.
TEST_F(ShapeLogitsTest, LongHistoriesAndHugeCounts) {
  StepSizes sizes;
  sizes.block_size = 64;
  sizes.max_blocks = 128;
  sizes.num_slots = 3;
  sizes.vocab = 9001;
  sizes.max_logits_rows = 4;
  StepData d{sizes};
  std::mt19937 random(3);
  for (int s = 0; s < 3; ++s) {
    Ids ids(7000);
    for (int32_t& id : ids) id = s == 0 ? 9000 : s == 1 ? below(random, 9001) : below(random, 3);
    d.set_sequence(s, ids, 6999);
    SlotParams& p = d.params[static_cast<size_t>(s)];
    p.prompt_len = s == 1 ? 0 : 100;
    p.repetition_penalty = 1.1f;
    p.presence_penalty = 0.3f;
    p.frequency_penalty = s == 2 ? -0.01f : 0.1f;
    d.add_span(s, 1, 0);
  }
  expect_shaped(d, random_floats(size_t{3} * 9001, 5, 3.0f), 4);
}

}  // namespace
}  // namespace foretoken
