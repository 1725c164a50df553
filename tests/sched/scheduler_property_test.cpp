#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "sched/device_model.h"
#include "sched/scheduler.h"

// Thousands of random requests, aborts and accepted counts against a model of the device: whatever
// the order, counts stay in their bounds, every KV entry that is read is right, and all comes free.

namespace foretoken {
namespace {

class RandomRun {
 public:
  explicit RandomRun(unsigned seed)
      : random_(seed),
        config_{.num_blocks = pick(7, 30),
                .block_size = 4,
                .max_num_seqs = pick(1, 6),
                .max_num_batched_tokens = pick(1, 24),
                .max_block_assignments = 64,
                .prefix_caching = pick(0, 1) == 1},
        steps_in_flight_(pick(1, 3)),
        max_drafts_(pick(0, 5)),
        scheduler_(config_),
        device_({.block_size = 4, .seed = seed, .end_odds = pick(5, 60)}) {}

  void run(int num_requests) {
    int idle_rounds = 0;
    while (num_requests > 0 || !scheduler_.idle()) {
      if (num_requests > 0 && pick(0, 2) == 0) {
        submit();
        --num_requests;
      }
      if (pick(0, 11) == 0) abort_any();
      const bool planned = step();
      if (testing::Test::HasFailure()) return;
      idle_rounds = planned || num_requests > 0 ? 0 : idle_rounds + 1;
      ASSERT_LT(idle_rounds, 10) << "no progress";
    }
    EXPECT_EQ(scheduler_.blocks().num_free(), scheduler_.blocks().num_usable());
    EXPECT_EQ(scheduler_.num_free_slots(), config_.max_num_seqs);
    for (const auto& sequence : sequences_) {
      EXPECT_EQ(sequence->state, SequenceState::kReleased);
    }
  }

  int64_t num_preemptions() const { return scheduler_.stats().num_preemptions; }
  int64_t num_hit_tokens() const { return scheduler_.stats().num_hit_tokens; }

 private:
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

  void submit() {
    auto sequence = std::make_unique<Sequence>();
    const int capacity = scheduler_.blocks().num_usable() * config_.block_size;
    sequence->prompt_len = pick(1, std::min(40, capacity - 1));
    sequence->max_len = std::min(capacity, sequence->prompt_len + pick(1, 30));
    sequence->max_drafts = pick(0, max_drafts_);
    sequence->cache_salt = static_cast<uint64_t>(pick(0, 1));
    const int base = pick(0, 2) * 100;
    for (int i = 0; i < sequence->prompt_len; ++i) sequence->tokens.push_back(base + i);
    ASSERT_TRUE(scheduler_.check_fits(sequence->prompt_len, sequence->max_len).ok());
    scheduler_.add(*sequence);
    sequences_.push_back(std::move(sequence));
  }

  void abort_any() {
    if (sequences_.empty()) return;
    (void)scheduler_.finish(*sequences_[random_() % sequences_.size()]);
  }

  bool step() {
    StepPlan plan;
    const bool planned = scheduler_.plan(plan);
    if (planned) {
      check_plan(plan);
      steps_.push_back({std::move(plan), {}});
      steps_.back().second = DeviceModel::record(steps_.back().first);
    } else if (steps_.empty()) {
      EXPECT_TRUE(scheduler_.idle()) << "nothing to run, nothing in flight, and not idle";
    }
    if (!steps_.empty() && (!planned || static_cast<int>(steps_.size()) >= steps_in_flight_)) {
      reconcile();
    }
    check_blocks();
    return planned;
  }

  void check_plan(const StepPlan& plan) {
    EXPECT_LE(plan.num_rows, config_.max_num_batched_tokens);
    EXPECT_LE(static_cast<int>(plan.spans.size()), config_.max_num_seqs);
    EXPECT_LE(static_cast<int>(plan.blocks.size()), config_.max_block_assignments);
    int num_rows = 0;
    std::set<int> slots;
    for (const Span& span : plan.spans) {
      num_rows += span.max_rows();
      EXPECT_GT(span.num_tokens, 0);
      EXPECT_LE(span.max_drafts, span.sequence->max_drafts);
      EXPECT_TRUE(slots.insert(span.sequence->slot).second) << "two spans of one slot";
      if (!span.samples) continue;
      EXPECT_GE(static_cast<int>(span.sequence->blocks.size()) * config_.block_size,
                span.sequence->len_bound());
    }
    EXPECT_EQ(num_rows, plan.num_rows);
  }

  void reconcile() {
    std::string problem;
    const auto& [plan, recorded] = steps_.front();
    const std::vector<DeviceModel::Result> results = device_.run(recorded, problem);
    EXPECT_EQ(problem, "");
    for (size_t i = 0; i < results.size(); ++i) {
      (void)scheduler_.reconcile(plan.spans[i], results[i].ids, results[i].ended);
    }
    steps_.pop_front();
  }

  // Counts references, and sees that only full blocks are shared: nobody writes to those again.
  void check_blocks() {
    std::map<BlockId, int> holders;
    for (const auto& sequence : sequences_) {
      for (const BlockId block : sequence->blocks) ++holders[block];
    }
    int num_held = 0;
    for (const auto& [block, count] : holders) {
      ASSERT_NE(block, kNullBlock);
      ASSERT_EQ(scheduler_.blocks().num_refs(block), count) << "block " << block;
      ++num_held;
    }
    EXPECT_EQ(scheduler_.blocks().num_free(), scheduler_.blocks().num_usable() - num_held);
    for (const auto& sequence : sequences_) {
      const int written = std::max(sequence->num_scheduled, sequence->known_len() - 1);
      for (size_t i = 0; i < sequence->blocks.size(); ++i) {
        if (holders[sequence->blocks[i]] < 2) continue;
        EXPECT_LE(static_cast<int>(i + 1) * config_.block_size, written) << "shared and not full";
      }
    }
  }

  std::mt19937 random_;
  const SchedulerConfig config_;
  const int steps_in_flight_;
  const int max_drafts_;
  Scheduler scheduler_;
  DeviceModel device_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::deque<std::pair<StepPlan, DeviceModel::Step>> steps_;
};

TEST(SchedulerProperty, RandomRunsKeepEveryInvariant) {
  int64_t num_preemptions = 0;
  int64_t num_hit_tokens = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomRun run(seed);
    run.run(25);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    num_preemptions += run.num_preemptions();
    num_hit_tokens += run.num_hit_tokens();
  }
  // The runs must have met what they are about.
  EXPECT_GT(num_preemptions, 100);
  EXPECT_GT(num_hit_tokens, 1000);
}

}  // namespace
}  // namespace foretoken
