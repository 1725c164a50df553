#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/device_model.h"
#include "sched/scheduler.h"
#include "sched/time_bound.h"

namespace foretoken {

struct RunOptions {
  unsigned seed = 0;
  int window = 0;  // 0: no windowed layers
  int num_stages = 1;
  int device_window = 0;  // larger than `window`: the scheduler frees too early
  int num_host_blocks = 0;
  int num_host_windows = 0;
  int num_host_states = 0;
  int num_snapshots = 0;  // of states of recurrent layers; 0: there are none
  int bound_rows = 0;     // that steps beside decoding sequences may have by a bound; 0: none
  bool shares = false;    // SchedulerConfig::share_rows, with paced prompts or without
};

// Random requests, aborts and accepted counts against a model of the device.
class RandomRun {
 public:
  explicit RandomRun(const RunOptions& options)
      : random_(options.seed),
        config_(random_config(options)),
        steps_in_flight_(pick(1, 3) + options.num_stages - 1),
        max_draft_tokens_(pick(0, 5)),
        scheduler_(config_),
        times_(one_row_a_nanosecond()),
        bound_(std::max(options.bound_rows, 1), config_.max_num_batched_tokens, times_),
        is_bound_(options.bound_rows > 0),
        device_({.block_size = config_.block_size,
                 .window = std::max(options.device_window, config_.window),
                 .seed = options.seed,
                 .end_odds = pick(5, 60),
                 .drafters = config_.drafters,
                 .keeps_states = options.num_snapshots > 0},
                scheduler_) {}

  // Until all requests have ended, or to the first problem of the device.
  void run(int num_requests) {
    int idle_rounds = 0;
    while (num_requests > 0 || !scheduler_.idle()) {
      if (num_requests > 0 && pick(0, 2) == 0) {
        submit();
        --num_requests;
      }
      if (pick(0, 11) == 0) abort_any();
      const bool planned = step();
      if (testing::Test::HasFailure() || !problem_.empty()) return;
      idle_rounds = planned || num_requests > 0 ? 0 : idle_rounds + 1;
      ASSERT_LT(idle_rounds, 10) << "no progress";
    }
    for (const BlockPool* pool : {&scheduler_.blocks(), scheduler_.window_blocks()}) {
      if (pool == nullptr) continue;
      EXPECT_EQ(pool->num_free(), pool->num_usable());
    }
    EXPECT_EQ(scheduler_.num_free_slots(), config_.max_num_seqs);
    for (const auto& sequence : sequences_) {
      EXPECT_EQ(sequence->state, SequenceState::kReleased);
    }
  }

  const std::string& problem() const { return problem_; }
  int num_bound() const { return num_bound_; }
  const SchedulerStats& stats() const { return scheduler_.stats(); }
  const HostBlockStats& host_stats() const { return scheduler_.host_stats(); }
  const DeviceModel& device() const { return device_; }
  // States, to snapshots and from them.
  int64_t num_kept() const { return num_kept_; }
  int64_t num_brought() const { return num_brought_; }
  // Everything that was planned.
  const std::vector<int>& trace() const { return trace_; }

 private:
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

  static CostTable one_row_a_nanosecond() {
    CostTable times;
    times.target.add(1, 1);
    times.target.add(1000, 1000);
    return times;
  }

  SchedulerConfig random_config(const RunOptions& options) {
    SchedulerConfig config;
    config.block_size = 1 << pick(0, 3);
    const int tokens = pick(24, 120) * (options.num_snapshots > 2 ? 4 : 1);
    config.num_blocks = tokens / config.block_size + 2;
    if (options.window > 0) {
      config.window = options.window;
      const int least = (config.window - 1 + config.block_size - 1) / config.block_size + 1;
      config.num_window_blocks = 1 + least + pick(0, config.num_blocks);
    }
    config.max_num_seqs = pick(1, 6);
    config.max_num_batched_tokens = pick(1, 24) * (options.bound_rows > 0 ? 3 : 1);
    if (options.shares) {
      config.share_rows = pick(1, config.max_num_batched_tokens);
      config.paced_prompt_len = pick(0, 20);
    }
    config.max_logits_rows = std::min(config.max_num_batched_tokens, pick(1, 40));
    config.max_init_words = pick(5, 12);
    config.max_block_assignments = 512;
    config.num_stages = options.num_stages;
    config.num_host_blocks = options.num_host_blocks;
    config.num_host_windows = options.num_host_windows;
    config.num_host_states = options.num_host_states;
    config.num_snapshots = options.num_snapshots;
    config.prefix_caching = pick(0, 3) > 0;
    if (pick(0, 1) == 1) config.policy = SchedulingPolicy::kPriority;
    for (int i = pick(1, 3); i > 0; --i) {
      const bool has_kv = pick(0, 3) > 0;
      config.drafters.push_back({.looks_up = !has_kv && i % 2 == 1,
                                 .has_kv = has_kv,
                                 .keeps_written = has_kv && pick(0, 1) == 1,
                                 .max_len = pick(0, 3) == 0 ? pick(2, 60) : INT32_MAX});
      if (options.num_snapshots > 0) config.drafters.back().keeps_states = has_kv && i % 2 == 0;
    }
    return config;
  }

  void submit() {
    auto sequence = std::make_unique<Sequence>();
    const int capacity = scheduler_.blocks().num_usable() * config_.block_size;
    sequence->prompt_len = pick(1, std::min(40, capacity - 1));
    sequence->cache_salt = static_cast<uint64_t>(pick(0, 1));
    continue_one(*sequence);
    sequence->pools = pick(0, 7) == 0;
    sequence->max_len = std::min(capacity, sequence->prompt_len + pick(1, 30));
    if (sequence->pools) sequence->max_len = sequence->prompt_len;
    sequence->max_draft_tokens = sequence->pools ? 0 : pick(0, max_draft_tokens_);
    sequence->drafter = pick(0, static_cast<int>(config_.drafters.size()) - 1);
    sequence->priority = pick(-1, 1);
    sequence->num_init_words = pick(0, 5);
    sequence->scores_prompt = !sequence->pools && pick(0, 7) == 0;
    sequence->bypasses_prefix_cache = sequence->pools || sequence->scores_prompt;
    sequence->features = static_cast<uint32_t>(pick(0, 7)) |
                         (sequence->pools ? uint32_t{kPools} : 0) |
                         (sequence->scores_prompt ? uint32_t{kScoresPrompt} : 0);
    sequence->may_pause = !sequence->pools && pick(0, 3) == 0;
    if (sequence->may_pause) sequence->features |= kHasGrammar;
    const int base = pick(0, 2) * 100;
    const int num_given = static_cast<int>(sequence->tokens.size());
    for (int i = num_given; i < sequence->prompt_len; ++i) sequence->tokens.push_back(base + i);
    ASSERT_TRUE(scheduler_.check_fits(sequence->prompt_len, sequence->max_len).ok());
    scheduler_.add(*sequence);
    sequences_.push_back(std::move(sequence));
  }

  // Sometimes the next turn of one that has ended; it decides how long the prompt is, too.
  void continue_one(Sequence& sequence) {
    if (config_.num_snapshots == 0 || sequences_.empty() || pick(0, 2) == 0) return;
    const size_t back = random_() % std::min<size_t>(sequences_.size(), 4);
    const Sequence& before = *sequences_[sequences_.size() - 1 - back];
    if (before.state != SequenceState::kReleased) return;
    const int capacity = scheduler_.blocks().num_usable() * config_.block_size;
    sequence.prompt_len = std::min(capacity - 1, before.known_len() + pick(1, 12));
    sequence.cache_salt = before.cache_salt;
    sequence.tokens = before.tokens;
    sequence.tokens.resize(
        std::min(sequence.tokens.size(), static_cast<size_t>(sequence.prompt_len)));
  }

  void abort_any() {
    if (sequences_.empty()) return;
    (void)scheduler_.finish(*sequences_[random_() % sequences_.size()]);
  }

  // They rest for a while, then draft with plenty of rows, with few, or for few sequences.
  const std::vector<DraftGrant>& random_grants() {
    grants_.resize(config_.drafters.size());
    for (DraftGrant& grant : grants_) {
      if (pick(0, 5) > 0) continue;
      grant = {};
      if (pick(0, 2) == 0) continue;
      grant.num_draft_tokens = pick(0, max_draft_tokens_ + 1);
      grant.catch_up_rows = pick(0, 3) == 0 ? pick(0, 12) : 1000;
      if (pick(0, 3) == 0) grant.max_spans = pick(1, 3);
      if (pick(0, 3) == 0) grant.max_class = pick(0, 8);
      if (pick(0, 1) == 0) grant.max_missing = pick(0, 40);
    }
    return grants_;
  }

  bool step() {
    StepPlan plan;
    const PacedRows paced{.bound = is_bound_ ? &bound_ : nullptr};
    const bool planned = scheduler_.plan(plan, random_grants(), paced);
    if (planned) {
      if (plan.load.num_prompt_rows > 0) {
        EXPECT_LE(plan.load.num_prompt_rows, bound_.prompt_rows(plan.load));
        ++num_bound_;
        bound_.observe(plan.load, 1 + (plan.num_rows * (trace_.size() % 7)) / 4);
      }
      check_plan(plan);
      check_stages(plan);
      check_moves(plan);
      check_states(plan);
      steps_.push_back({std::move(plan), {}});
      steps_.back().second = device_.record(steps_.back().first);
    } else if (steps_.empty()) {
      EXPECT_TRUE(scheduler_.idle()) << "nothing to run, nothing in flight, and not idle";
    }
    if (!steps_.empty() && (!planned || static_cast<int>(steps_.size()) >= steps_in_flight_)) {
      reconcile();
    }
    check_blocks(false, scheduler_.blocks());
    if (scheduler_.window_blocks() != nullptr) check_blocks(true, *scheduler_.window_blocks());
    return planned;
  }

  void check_plan(const StepPlan& plan) {
    EXPECT_LE(plan.num_rows, config_.max_num_batched_tokens);
    EXPECT_LE(plan.num_logits_rows, config_.max_logits_rows);
    EXPECT_LE(plan.num_words, config_.max_init_words);
    EXPECT_LE(static_cast<int>(plan.spans.size()), config_.max_num_seqs);
    EXPECT_LE(static_cast<int>(plan.blocks.size()), config_.max_block_assignments);
    int num_rows = 0;
    int num_logits_rows = 0;
    int num_words = 0;
    uint32_t features = 0;
    std::set<int> slots;
    check_drafts(plan);
    for (const Span& span : plan.spans) {
      num_rows += span.max_rows();
      num_logits_rows += span.max_logits_rows();
      if (span.is_first) num_words += span.sequence->num_init_words;
      features |= span.sequence->features & ~uint32_t{kScoresPrompt | kHasGrammar};
      if (span.samples) features |= span.sequence->features & kHasGrammar;
      if (span.wants_all) features |= kScoresPrompt;
      check_span(span);
      EXPECT_TRUE(slots.insert(span.sequence->slot).second) << "two spans of one slot";
      trace_.insert(trace_.end(), {static_cast<int>(span.sequence->arrival), span.num_tokens,
                                   span.max_verified, span.num_hit_tokens, span.sequence->slot,
                                   span.num_draft_tokens, span.draft_rows});
    }
    for (const BlockAssignment& block : plan.blocks) trace_.push_back(block.block);
    EXPECT_EQ(num_rows, plan.num_rows);
    EXPECT_EQ(num_logits_rows, plan.num_logits_rows);
    EXPECT_EQ(num_words, plan.num_words);
    EXPECT_EQ(features, plan.features);
  }

  // No order is needed among those of a direction.
  void check_moves(const StepPlan& plan) const {
    const std::array<int, kNumHostParts> num_images = {
        config_.num_host_blocks, config_.num_host_windows, config_.num_host_states};
    for (const auto* moves : {&plan.moves_out, &plan.moves_in}) {
      std::set<std::pair<HostPart, BlockId>> blocks;
      std::set<std::pair<HostPart, int>> images;
      for (const BlockMove& move : *moves) {
        EXPECT_TRUE(blocks.insert({move.part, move.block}).second) << "a block moves twice";
        EXPECT_TRUE(images.insert({move.part, move.image}).second) << "an image moves twice";
        EXPECT_TRUE(move.image >= 0 && move.image < num_images[static_cast<size_t>(move.part)]);
      }
    }
    for (const BlockMove& move : plan.moves_in) {
      if (move.part != HostPart::kFull) continue;
      EXPECT_EQ(move.epoch, scheduler_.blocks().epoch(move.block));
      if (move.parent < 0) continue;
      EXPECT_EQ(move.parent_epoch, scheduler_.blocks().epoch(move.parent));
    }
  }

  void check_states(const StepPlan& plan) {
    std::set<int> written;
    for (const StateMove& move : plan.states_out) {
      EXPECT_TRUE(written.insert(move.snapshot).second) << "a snapshot is written twice";
      EXPECT_TRUE(move.snapshot >= 0 && move.snapshot < config_.num_snapshots);
    }
    std::set<int> slots;
    for (const StateMove& move : plan.states_in) {
      EXPECT_TRUE(slots.insert(move.slot).second) << "a slot gets two states";
    }
    num_kept_ += static_cast<int64_t>(plan.states_out.size());
    num_brought_ += static_cast<int64_t>(plan.states_in.size());
    EXPECT_LE(plan.states_out.size(), 2u * static_cast<size_t>(config_.max_num_seqs));
  }

  // What a stage has still to compute is of no sequence that is in this step too.
  void check_stages(const StepPlan& plan) const {
    const size_t others = std::min(static_cast<size_t>(config_.num_stages - 1), steps_.size());
    for (size_t i = steps_.size() - others; i < steps_.size(); ++i) {
      for (const Span& before : steps_[i].first.spans) {
        for (const Span& span : plan.spans) EXPECT_NE(span.sequence, before.sequence);
      }
    }
  }

  void check_drafts(const StepPlan& plan) {
    std::array<DraftUse, kMaxDrafters> uses{};
    std::array<int, kMaxDrafters> num_spans{};
    for (const Span& span : plan.spans) {
      const Sequence& sequence = *span.sequence;
      const auto drafter = static_cast<size_t>(sequence.drafter);
      EXPECT_LE(span.num_draft_tokens, sequence.max_draft_tokens);
      EXPECT_TRUE(span.num_draft_tokens == 0 || span.samples);
      EXPECT_EQ(span.num_draft_tokens, sequence.draft_bound);
      uses[drafter].num_draft_tokens =
          std::max(uses[drafter].num_draft_tokens, span.num_draft_tokens);
      uses[drafter].catch_up_rows += span.draft_rows;
      if (span.num_draft_tokens > 0) ++uses[drafter].num_spans;
      if (span.num_draft_tokens + span.draft_rows > 0) ++num_spans[drafter];
    }
    for (size_t i = 0; i < grants_.size(); ++i) {
      EXPECT_EQ(uses[i].num_draft_tokens, plan.drafts[i].num_draft_tokens);
      EXPECT_EQ(uses[i].catch_up_rows, plan.drafts[i].catch_up_rows);
      EXPECT_EQ(uses[i].num_spans, plan.drafts[i].num_spans);
      EXPECT_LE(uses[i].num_draft_tokens, grants_[i].num_draft_tokens);
      EXPECT_LE(uses[i].catch_up_rows, grants_[i].catch_up_rows);
      EXPECT_LE(num_spans[i], grants_[i].max_spans);
    }
  }

  void check_span(const Span& span) {
    const Sequence& sequence = *span.sequence;
    EXPECT_GT(span.num_tokens, 0);
    EXPECT_LE(span.max_verified, sequence.max_draft_tokens);
    EXPECT_FALSE(sequence.bypasses_prefix_cache && span.num_hit_tokens > 0);
    EXPECT_TRUE(!sequence.pools || span.max_verified + span.max_logits_rows() == 0);
    // A prompt row is scored, unless that happened before a preemption.
    if (sequence.scores_prompt && span.first_new_id >= 0 &&
        span.first_new_id < sequence.prompt_len - 1 &&
        span.first_new_id + span.num_tokens > sequence.num_scored) {
      EXPECT_TRUE(span.wants_all);
    }
    EXPECT_TRUE(!span.wants_all || span.first_new_id < sequence.prompt_len - 1);
    if (!span.samples) return;
    EXPECT_GE(static_cast<int>(sequence.blocks.size()) * config_.block_size, sequence.len_bound());
  }

  void reconcile() {
    const auto& [plan, recorded] = steps_.front();
    const std::vector<DeviceModel::Result> results = device_.run(recorded, problem_);
    for (size_t i = 0; i < results.size(); ++i) {
      (void)scheduler_.reconcile(plan.spans[i], {.ids = results[i].ids,
                                                 .ended = results[i].ended,
                                                 .draft_missing = results[i].draft_missing});
    }
    steps_.pop_front();
  }

  // Counts references, and sees that only full blocks are shared: nobody writes to those again.
  void check_blocks(bool windowed, const BlockPool& pool) {
    std::vector<int> holders(static_cast<size_t>(pool.num_usable()) + 1);
    for (const auto& sequence : sequences_) {
      for (const BlockId block : windowed ? sequence->window_blocks : sequence->blocks) {
        ASSERT_TRUE(windowed || block != kNullBlock);
        if (block != kNullBlock) ++holders[static_cast<size_t>(block)];
      }
      if (windowed) check_window(*sequence);
    }
    int num_held = 0;
    for (size_t block = 0; block < holders.size(); ++block) {
      if (holders[block] == 0) continue;
      ++num_held;
      ASSERT_EQ(pool.num_refs(static_cast<BlockId>(block)), holders[block]) << "block " << block;
    }
    EXPECT_EQ(pool.num_free(), pool.num_usable() - num_held);
    for (const auto& sequence : sequences_) {
      const std::vector<BlockId>& blocks = windowed ? sequence->window_blocks : sequence->blocks;
      if (blocks.empty()) continue;
      const int written = std::max(sequence->num_scheduled, sequence->known_len() - 1);
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (holders[static_cast<size_t>(blocks[i])] < 2) continue;
        EXPECT_LE(static_cast<int>(i + 1) * config_.block_size, written) << "shared and not full";
      }
    }
  }

  // Held is what the window of the first row to come touches, and nothing before it.
  void check_window(const Sequence& sequence) const {
    const int first = std::max(0, sequence.num_computed - config_.window + 1) / config_.block_size;
    EXPECT_LE(sequence.window_blocks.size(), sequence.blocks.size());
    for (size_t i = 0; i < sequence.window_blocks.size(); ++i) {
      const bool held = sequence.window_blocks[i] != kNullBlock;
      EXPECT_EQ(held, static_cast<int>(i) >= sequence.num_freed_window_blocks);
      if (sequence.state == SequenceState::kRunning) {
        EXPECT_EQ(held, static_cast<int>(i) >= first);
      }
    }
  }

  std::mt19937 random_;
  const SchedulerConfig config_;
  const int steps_in_flight_;
  const int max_draft_tokens_;
  Scheduler scheduler_;
  const CostTable times_;
  TimeBound bound_;
  const bool is_bound_;
  int64_t num_kept_ = 0;
  int64_t num_brought_ = 0;
  int num_bound_ = 0;  // steps with prompts beside sequences that decode
  DeviceModel device_;
  std::vector<DraftGrant> grants_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::deque<std::pair<StepPlan, DeviceModel::Step>> steps_;
  std::string problem_;
  std::vector<int> trace_;
};

}  // namespace foretoken
