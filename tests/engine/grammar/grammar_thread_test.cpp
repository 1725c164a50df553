#include "engine/grammar/grammar_thread.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "engine/grammar/fake_mask.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kSpans = 3, kRowsEach = 4, kWords = 2, kPromptLen = 5;

// The queue's side of an exchange, played by the test.
class GrammarThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    exchange_ = {.posted = &words_[0],
                 .passed = &words_[1],
                 .taken = &words_[2],
                 .answered = &words_[3],
                 .num_spans = num_spans_,
                 .spans = spans_,
                 .answers = answers_,
                 .masks = masks_,
                 .resting = &words_[4],
                 .repairs = repairs_,
                 .max_spans = kSpans,
                 .rows_each = kRowsEach,
                 .mask_words = kWords};
  }
  void start(int64_t slow_ns = 1'000'000'000, int num_helpers = 0) {
    thread_ = std::make_unique<GrammarThread>(exchange_, slow_ns, num_helpers);
    thread_->start();
  }

  static std::shared_ptr<GrammarSequence> sequence(std::chrono::milliseconds delay = {},
                                                   HeldFill* held = nullptr) {
    auto mask = std::make_unique<FakeMask>(-1, delay);
    mask->held = held;
    // The rest is computed in the background, where time is scarce.
    if (held != nullptr) mask->num_slow_fills = 1;
    return std::make_shared<GrammarSequence>(std::move(mask), kPromptLen, kWords, kRowsEach - 1);
  }

  static uint64_t load(uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  static void store(uint64_t& word, uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }

  bool has_room() { return load(*exchange_.taken) + kMaskRing > next_; }
  // What export_spans does.
  uint64_t post(const std::vector<MaskSpan>& spans) {
    thread_->expect();
    const uint64_t ticket = next_++;
    if (load(*exchange_.taken) + kMaskRing > ticket) {
      const auto entry = ticket % kMaskRing;
      num_spans_[entry] = static_cast<int32_t>(spans.size());
      std::copy(spans.begin(), spans.end(), spans_ + entry * kSpans);
      store(*exchange_.posted, ticket + 1);
    }
    store(*exchange_.passed, ticket + 1);
    return ticket;
  }
  // What await_masks does.
  bool wait(uint64_t ticket) {
    const auto end = std::chrono::steady_clock::now() + test::kPatience;
    while (load(*exchange_.answered) <= ticket && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return load(*exchange_.answered) > ticket;
  }
  MaskAnswer answer(uint64_t ticket, int span) {
    return mask_answer(load(answers_[ticket % kMaskRing * kSpans + static_cast<size_t>(span)]),
                       ticket);
  }
  Ids bits(uint64_t ticket, int span) {
    Ids bits;
    for (int i = 0; i < answer(ticket, span).num_masks; ++i) {
      bits.push_back(FakeMask::bit_of({masks_ + (span * kRowsEach + i) * kWords, size_t{kWords}}));
    }
    return bits;
  }

  uint64_t words_[5] = {};
  int32_t num_spans_[kMaskRing] = {};
  MaskSpan spans_[kMaskRing * kSpans] = {};
  uint64_t answers_[kMaskRing * kSpans] = {};
  int32_t repairs_[kSpans * kMaxDraftTokens] = {};
  uint32_t masks_[kSpans * kRowsEach * kWords] = {};
  MaskExchange exchange_{};
  uint64_t next_ = 0;
  std::unique_ptr<GrammarThread> thread_;
};

TEST_F(GrammarThreadTest, AnswersEverySpanThatHasAGrammar) {
  start();
  const auto a = sequence(), b = sequence();
  const uint64_t first = thread_->add(a), second = thread_->add(b);
  const uint64_t ticket = post({FakeMask::span(first, kPromptLen, {}, {0, 1}), MaskSpan{},
                                FakeMask::span(second, kPromptLen, {0, 1}, {})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(bits(ticket, 0), (Ids{0, 1, 2}));
  EXPECT_EQ(answer(ticket, 0).num_decided, 3);
  EXPECT_EQ(answer(ticket, 1).num_masks, 0);
  EXPECT_EQ(bits(ticket, 2), Ids{2});
}

TEST_F(GrammarThreadTest, RepairsTheDraftsOfTicketsThatAskForIt) {
  start();
  const auto a = sequence(), b = sequence();
  const uint64_t first = thread_->add(a), second = thread_->add(b);
  const auto drafts = [&](uint64_t ticket, int span) {
    const int32_t* begin = repairs_ + span * kMaxDraftTokens;
    return Ids(begin, begin + answer(ticket, span).num_decided - 1);
  };
  uint64_t ticket = post({FakeMask::span(first, kPromptLen, {}, {0, 9}, 3), MaskSpan{},
                          FakeMask::span(second, kPromptLen, {0, 1}, {}, 2)});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(drafts(ticket, 0), (Ids{0, 1, 2}));
  EXPECT_EQ(answer(ticket, 1).num_decided, 0);
  EXPECT_EQ(drafts(ticket, 2), (Ids{2, 3}));
  ticket = post({FakeMask::span(first, kPromptLen, {}, {0, 1, 2})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(bits(ticket, 0), (Ids{0, 1, 2, 3}));
}

TEST_F(GrammarThreadTest, RestsWhereRepairingTakesTooLong) {
  for (const double share : {0.0, 1e6}) {
    next_ = 0;
    std::fill(std::begin(words_), std::end(words_), 0);
    thread_ = std::make_unique<GrammarThread>(exchange_, 1'000'000'000, 0, nullptr, share);
    thread_->start();
    const auto kept = sequence();
    const uint64_t number = thread_->add(kept);
    thread_->expect();  // so that it does not park, and knows what a step takes
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(wait(post({FakeMask::span(number, kPromptLen, {}, {})})));
      ASSERT_TRUE(wait(post({FakeMask::span(number, kPromptLen, {}, {}, 3)})));
    }
    EXPECT_EQ(load(*exchange_.resting), share == 0 ? 1u : 0u);
    thread_->stop();
  }
}

TEST_F(GrammarThreadTest, DraftsOfSlowSequencesStayAsTheyAre) {
  start(0);
  const auto slow = sequence(std::chrono::milliseconds(1));
  slow->pace.note_slow();
  const uint64_t number = thread_->add(slow);
  const uint64_t ticket = post({FakeMask::span(number, kPromptLen, {}, {0, 9}, 3)});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(answer(ticket, 0).num_decided, 0);
  EXPECT_FALSE(slow->is_awaited.load());
}

// An output of 50 ids with drafts that are right now and then, each step at once behind the one
// before, with pauses in which the thread parks.
TEST_F(GrammarThreadTest, FollowsAnOutputThroughManySteps) {
  start();
  const auto kept = sequence();
  const uint64_t number = thread_->add(kept);
  Ids output;
  for (int step = 0; output.size() < 50; ++step) {
    const auto n = static_cast<int32_t>(output.size());
    Ids drafts;
    for (int i = 0; i < step % kRowsEach; ++i) drafts.push_back(i < step % 3 ? n + i : 60);
    const uint64_t ticket = post({FakeMask::span(number, kPromptLen, output, drafts)});
    ASSERT_TRUE(wait(ticket)) << step;
    ASSERT_EQ(answer(ticket, 0).num_decided, std::ssize(drafts) + 1);
    for (const int32_t id : bits(ticket, 0)) {
      ASSERT_EQ(id, std::ssize(output));
      output.push_back(id);
      if (output.size() > static_cast<size_t>(n) + drafts.size()) break;
      if (drafts[output.size() - 1 - static_cast<size_t>(n)] != id) break;
    }
    if (step % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(GrammarThreadTest, SequencesThatAreGoneGetNoAnswerAndHoldNobodyUp) {
  start();
  auto gone = sequence();
  const auto kept = sequence();
  const uint64_t first = thread_->add(gone), second = thread_->add(kept);
  gone = nullptr;
  const uint64_t ticket =
      post({FakeMask::span(first, kPromptLen, {}, {}), FakeMask::span(second, kPromptLen, {}, {})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(answer(ticket, 0).num_decided, 0);
  EXPECT_EQ(bits(ticket, 1), Ids{0});
}

TEST_F(GrammarThreadTest, HelpersShareTheSpansOfAStep) {
  start(1'000'000'000, 2);
  const std::shared_ptr<GrammarSequence> kept[] = {sequence(), sequence(), sequence()};
  uint64_t numbers[kSpans];
  for (int i = 0; i < kSpans; ++i) numbers[i] = thread_->add(kept[i]);
  Ids output;
  for (int step = 0; step < 60; ++step) {
    std::vector<MaskSpan> spans;
    for (const uint64_t number : numbers) {
      spans.push_back(FakeMask::span(number, kPromptLen, output, {step, step + 1}));
    }
    const uint64_t ticket = post(spans);
    ASSERT_TRUE(wait(ticket)) << step;
    for (int i = 0; i < kSpans; ++i) ASSERT_EQ(bits(ticket, i), (Ids{step, step + 1, step + 2}));
    output.push_back(step);
    if (step % 20 == 19) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

// The slow sequence holds up one ticket at most; then the others go on beside it, and its masks are
// there in the end.
TEST_F(GrammarThreadTest, SlowSequencesWaitForThemselvesAlone) {
  // What makes a sequence slow is at most this and at least a twelfth of it.
  constexpr std::chrono::milliseconds kSlow{600};
  start(std::chrono::nanoseconds(kSlow).count());
  HeldFill second_mask{.number = 2, .reached = {}, .gate = {}};
  const auto slow = sequence(kSlow + kSlow / 10, &second_mask), fast = sequence();
  const uint64_t first = thread_->add(slow), second = thread_->add(fast);
  Ids output;
  const auto step = [&] {
    return post({FakeMask::span(first, kPromptLen, {}, {0, 1}),
                 FakeMask::span(second, kPromptLen, output, {})});
  };
  uint64_t ticket = step();
  ASSERT_TRUE(wait(ticket));
  EXPECT_LT(answer(ticket, 0).num_decided, 3);
  ASSERT_TRUE(second_mask.reached.wait());
  for (int i = 0; i < 20; ++i) {
    output.push_back(bits(ticket, 1).at(0));
    ticket = step();
    // Nobody opens the gate before.
    ASSERT_TRUE(wait(ticket));
    EXPECT_LT(answer(ticket, 0).num_decided, 3);
  }
  EXPECT_GT(thread_->num_slow_spans(), 0);
  second_mask.gate.open();
  EXPECT_TRUE(test::eventually([&] {
    ticket = step();
    return !wait(ticket) || answer(ticket, 0).num_decided == 3;
  }));
  EXPECT_EQ(bits(ticket, 0), (Ids{0, 1, 2}));
}

TEST_F(GrammarThreadTest, ASlowSequenceIsAwaitedUntilItsMasksAreThere) {
  std::atomic<int> num_ready{0};
  thread_ = std::make_unique<GrammarThread>(exchange_, 0, 0, [&] { ++num_ready; });
  thread_->start();
  HeldFill second_mask{.number = 2, .reached = {}, .gate = {}};
  const auto slow = sequence(std::chrono::milliseconds(20), &second_mask);
  const uint64_t number = thread_->add(slow);
  ASSERT_TRUE(wait(post({FakeMask::span(number, kPromptLen, {}, {0})})));
  EXPECT_TRUE(slow->is_awaited.load());
  EXPECT_EQ(thread_->num_awaited(), 1);
  second_mask.gate.open();
  EXPECT_TRUE(test::eventually([&] { return num_ready.load() > 0; }));
  EXPECT_FALSE(slow->is_awaited.load());
  EXPECT_EQ(thread_->num_awaited(), 0);
  const uint64_t ticket = post({FakeMask::span(number, kPromptLen, {}, {0})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(bits(ticket, 0), (Ids{0, 1}));
  EXPECT_FALSE(slow->is_awaited.load());
  thread_->stop();
}

// Steps go on while one mask is computed: entries run out, and the queue is told at once.
TEST_F(GrammarThreadTest, RunsOutOfEntriesAndRecovers) {
  start();
  HeldFill first_mask;
  const auto slow = sequence({}, &first_mask);
  const uint64_t number = thread_->add(slow);
  (void)post({FakeMask::span(number, kPromptLen, {}, {})});
  ASSERT_TRUE(first_mask.reached.wait());
  for (int i = 0; i < kMaskRing + 4; ++i) {
    (void)post({FakeMask::span(number, kPromptLen, {}, {})});
  }
  EXPECT_FALSE(has_room());
  first_mask.gate.open();
  ASSERT_TRUE(test::eventually([&] { return has_room(); }));
  const uint64_t ticket = post({FakeMask::span(number, kPromptLen, {}, {})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(bits(ticket, 0), Ids{0});
}

TEST_F(GrammarThreadTest, ForgetsSequencesThatAreGone) {
  start();
  for (int i = 0; i < 5000; ++i) (void)thread_->add(sequence());
  const auto kept = sequence();
  const uint64_t number = thread_->add(kept);
  for (int i = 0; i < 5000; ++i) (void)thread_->add(sequence());
  const uint64_t ticket = post({FakeMask::span(number, kPromptLen, {}, {})});
  ASSERT_TRUE(wait(ticket));
  EXPECT_EQ(bits(ticket, 0), Ids{0});
}

TEST_F(GrammarThreadTest, StopsWhileStepsAreExpected) {
  start();
  thread_->expect();
  thread_->stop();
}

}  // namespace
}  // namespace foretoken
