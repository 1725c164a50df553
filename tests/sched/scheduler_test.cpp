#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

TEST(Scheduler, DecodesWithTwoStepsInFlight) {
  EXPECT_EQ(
      "",
      run(drafting(
              {.num_blocks = 20, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16}),
          R"(
    submit a prompt=5 max=20 drafts=3
    plan limit=5
    span a tokens=5 limit=3 samples first
    plan limit=5
    span a tokens=1 drafts=3 limit=3 samples
    state passes=3 catch_up=0 drafting=1
    done a=1
    plan limit=5
    span a tokens=1 drafts=3 limit=3 samples
    done a=4
    done a=2!
    state running=0 free=19 slots=4
  )"));
}

TEST(Scheduler, CutsPromptsIntoChunksBesideDecodes) {
  EXPECT_EQ(
      "",
      run(drafting(
              {.num_blocks = 40, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 8}),
          R"(
    submit a prompt=3 max=30 drafts=2
    submit b prompt=11 max=30 base=300
    plan limit=2
    span a tokens=3 limit=2 samples first
    span b tokens=5 first
    plan limit=2
    span a tokens=1 drafts=2 limit=2 samples
    span b tokens=5
    plan
    span a tokens=1 drafts=2 samples
    span b tokens=1 samples
  )"));
}

TEST(Scheduler, HeldSequencesGetNoRowsAndKeepTheirPlace) {
  EXPECT_EQ(
      "",
      run(drafting(
              {.num_blocks = 40, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16}),
          R"(
    submit a prompt=3 max=30 drafts=2
    submit b prompt=3 max=30 base=300
    plan
    span a tokens=3 samples first
    span b tokens=3 samples first
    done a=1 b=1
    hold a
    state passes=0 catch_up=0 drafting=0
    plan limit=2
    span b tokens=1 samples
    done b=1
    finish b
    plan
    let a
    plan limit=2
    span a tokens=1 limit=2 samples
  )"));
}

TEST(Scheduler, NeverGrantsDraftsBeyondTheEnd) {
  EXPECT_EQ(
      "",
      run(drafting(
              {.num_blocks = 20, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16}),
          R"(
    submit a prompt=5 max=8 drafts=4
    plan limit=4
    span a tokens=5 limit=1 samples first
    plan limit=4
    span a tokens=1 drafts=1 samples
    plan limit=4
    span a tokens=1 samples
    plan limit=4
    done a=1
    done a=1
    done a=1!
    state free=19 running=0
  )"));
}

TEST(Scheduler, PrefixHitsSkipFullBlocksButNeverTheLastToken) {
  EXPECT_EQ(
      "", run({.num_blocks = 20, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16},
              R"(
    submit a prompt=8 max=10
    submit b prompt=8 max=10
    plan
    span a tokens=8 samples first
    span b tokens=8 samples first
    submit c prompt=8 max=10
    submit d prompt=8 max=10 salt=5
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=4 hits=4 samples first
    span d tokens=8 samples first
  )"));
}

TEST(Scheduler, PreemptsTheYoungestOnceNothingIsInFlight) {
  EXPECT_EQ("", run({.num_blocks = 5,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 16,
                     .prefix_caching = false},
                    R"(
    submit a prompt=7 max=16
    submit b prompt=7 max=16 base=300
    plan
    span a tokens=7 samples first
    span b tokens=7 samples first
    plan
    state free=0
    done a=1 b=1
    state running=1 waiting=1 free=2
    plan
    span a tokens=1 samples
    done a=1!
    plan
    span b tokens=8 samples first
  )"));
}

TEST(Scheduler, DropsDraftsBeforeItPreempts) {
  EXPECT_EQ(
      "",
      run(drafting(
              {.num_blocks = 4, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16}),
          R"(
    submit a prompt=6 max=12 drafts=4
    submit b prompt=2 max=12 base=300
    plan limit=4
    span a tokens=6 limit=4 samples first
    span b tokens=2 samples first
    done a=1 b=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    state running=2
  )"));
}

TEST(Scheduler, AbortWaitsForTheStepInFlight) {
  EXPECT_EQ(
      "", run({.num_blocks = 20, .block_size = 4, .max_num_seqs = 1, .max_num_batched_tokens = 16},
              R"(
    submit a prompt=5 max=20
    submit b prompt=5 max=20 base=300
    plan
    span a tokens=5 samples first
    finish a
    state running=0 slots=0
    plan
    done a=1
    state slots=1
    plan
    span b tokens=5 samples first
    finish b
    done b=1
    state free=19 slots=1
  )"));
}

SchedulerConfig priority_config() {
  return {.num_blocks = 20,
          .block_size = 4,
          .max_num_seqs = 2,
          .max_num_batched_tokens = 16,
          .policy = SchedulingPolicy::kPriority};
}

TEST(Scheduler, BetterPrioritiesAreAdmittedFirst) {
  SchedulerConfig config = priority_config();
  config.max_num_seqs = 4;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=5 max=20 priority=1
    submit b prompt=4 max=20 priority=-1 base=300
    submit c prompt=4 max=20 priority=1 base=500
    submit d prompt=4 max=20 base=700
    plan
    span b tokens=4 samples first
    span d tokens=4 samples first
    span a tokens=5 samples first
    span c tokens=3 first
    done a=1 b=1 c=0 d=1
    plan
    span b tokens=1 samples
    span d tokens=1 samples
    span a tokens=1 samples
    span c tokens=1 samples
  )"));
}

TEST(Scheduler, PrioritiesMeanNothingToFirstComeFirstServed) {
  SchedulerConfig config = priority_config();
  config.policy = SchedulingPolicy::kFcfs;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=4 max=20 priority=1
    submit b prompt=4 max=20 priority=-1 base=300
    submit c prompt=4 max=20 priority=-2 base=500
    plan
    span a tokens=4 samples first
    span b tokens=4 samples first
    done a=1 b=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    state preemptions=0
  )"));
}

TEST(Scheduler, ABetterPriorityTakesTheSlotOfTheWorstAndLatest) {
  EXPECT_EQ("", run(priority_config(), R"(
    submit a prompt=4 max=20 priority=1
    submit b prompt=4 max=20 priority=1 base=300
    plan
    span a tokens=4 samples first
    span b tokens=4 samples first
    submit c prompt=4 max=20 base=500
    submit d prompt=4 max=20 priority=1 base=700
    plan
    span a tokens=1 samples
    done a=1 b=1
    state running=1 waiting=3 preemptions=1 slots=1
    plan
    span a tokens=1 samples
    span c tokens=4 samples first
    done a=1!
    done c=1
    plan
    span c tokens=1 samples
    span b tokens=1 hits=4 samples first
    state preemptions=1 waiting=1
  )"));
}

TEST(Scheduler, ABetterPriorityTakesBlocksButNotFromItsEquals) {
  SchedulerConfig config = priority_config();
  config.num_blocks = 6;
  config.max_num_seqs = 4;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=7 max=20
    submit b prompt=7 max=20 priority=2 base=300
    plan
    span a tokens=7 samples first
    span b tokens=7 samples first
    done a=1 b=1
    submit c prompt=7 max=20 base=500
    plan
    span a tokens=1 samples
    done a=1
    state running=1 preemptions=1 waiting=2
    plan
    span a tokens=1 samples
    span c tokens=7 samples first
    state free=0
    submit d prompt=7 max=20 base=700
    done a=1 c=1
    plan
    span a tokens=1 samples
    state preemptions=2
  )"));
}

TEST(Scheduler, ABetterPriorityTakesTheRowsOfAWorseOne) {
  SchedulerConfig config = priority_config();
  config.max_num_seqs = 4;
  config.max_num_batched_tokens = 2;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=1 max=20 priority=1
    submit b prompt=1 max=20 priority=1 base=300
    plan
    span a tokens=1 samples first
    span b tokens=1 samples first
    submit c prompt=1 max=20 base=500
    done a=1 b=1
    plan
    span a tokens=1 samples
    span c tokens=1 samples first
    state preemptions=1
  )"));
}

TEST(Scheduler, DraftsLeaveARowToTheFirstWaitingSequence) {
  EXPECT_EQ("", run(drafting({.num_blocks = 20, .block_size = 4, .max_num_batched_tokens = 5}), R"(
    submit a prompt=4 max=20 drafts=8
    plan limit=8
    span a tokens=4 limit=8 samples first
    submit b prompt=4 max=20 base=300
    plan limit=8
    span a tokens=1 drafts=3 limit=8 samples
    span b tokens=1 first
    plan limit=8
    span a tokens=1 drafts=3 limit=8 samples
    span b tokens=1
  )"));
}

TEST(Scheduler, InitWordsOfAStepAreBounded) {
  EXPECT_EQ("", run({.num_blocks = 40,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 30,
                     .max_init_words = 10},
                    R"(
    submit a prompt=4 max=20 words=6
    submit b prompt=4 max=20 words=4 base=300
    submit c prompt=4 max=20 words=10 base=500
    submit d prompt=4 max=20 words=1 base=700
    plan
    span a tokens=4 samples first
    span b tokens=4 samples first
    state words=10
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=4 samples first
    state words=10
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=1 samples
    span d tokens=4 samples first
    state words=1
  )"));
}

TEST(Scheduler, PromptsAreScoredWithinTheLogitsRows) {
  EXPECT_EQ("", run(drafting({.num_blocks = 40,
                              .block_size = 4,
                              .max_num_seqs = 4,
                              .max_num_batched_tokens = 30,
                              .max_logits_rows = 6}),
                    R"(
    submit a prompt=3 max=30 drafts=2 features=1
    plan limit=2
    span a tokens=3 limit=2 samples first
    state logits=1 features=1
    submit b prompt=12 max=30 base=300 features=10 scores bypass
    done a=1
    plan limit=2
    span a tokens=1 drafts=2 limit=2 samples
    span b tokens=3 first all
    state logits=6 features=11
    done a=1 b=0
    plan limit=2
    span a tokens=1 drafts=2 limit=2 samples
    span b tokens=3 all
    done a=1 b=0
    plan limit=2
    span a tokens=1 drafts=2 limit=2 samples
    span b tokens=3 all
    done a=1! b=0
    plan
    span b tokens=3 samples all
    state logits=3 features=10
    done b=1
    plan
    span b tokens=1 samples
    state logits=1 features=2
  )"));
}

TEST(Scheduler, AResumedSequenceIsScoredOnlyWhereItWasNot) {
  SchedulerConfig config = priority_config();
  config.max_num_seqs = 1;
  config.max_num_batched_tokens = 4;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=10 max=30 priority=1 scores bypass
    plan
    span a tokens=4 first all
    submit b prompt=2 max=30 base=300
    plan
    done a=0
    plan
    span b tokens=2 samples first
    done b=1!
    plan
    span a tokens=4 first
    done a=0
    plan
    span a tokens=4 all
    done a=0
    plan
    span a tokens=2 samples all
  )"));
}

TEST(Scheduler, PoolingTakesBlocksForThePromptOnly) {
  EXPECT_EQ("", run({.num_blocks = 3, .block_size = 4, .max_num_batched_tokens = 6}, R"(
    submit a prompt=8 max=8 pools bypass features=16
    plan
    span a tokens=6 first
    state logits=0 features=16
    plan
    span a tokens=2 samples
    state logits=0 free=0
    plan
    done a=0
    done a=0!
    state running=0 free=2
  )"));
}

TEST(Scheduler, BypassedPromptsAreNotHitButCanBe) {
  EXPECT_EQ("", run({.num_blocks = 20, .block_size = 4, .max_num_batched_tokens = 64}, R"(
    submit a prompt=8 max=10 bypass
    plan
    span a tokens=8 samples first
    submit b prompt=8 max=10 bypass
    submit c prompt=8 max=10
    plan
    span a tokens=1 samples
    span b tokens=8 samples first
    span c tokens=4 hits=4 samples first
  )"));
}

TEST(Scheduler, ChoicesThatComeLaterHitTheFirstOnesBlocks) {
  EXPECT_EQ("", run({.num_blocks = 40, .block_size = 4, .max_num_batched_tokens = 20}, R"(
    submit a prompt=18 max=30
    submit b prompt=18 max=30
    submit c prompt=18 max=30
    plan
    span a tokens=18 samples first
    span b tokens=2 first
    plan
    span a tokens=1 samples
    span b tokens=16 samples
    span c tokens=2 hits=16 samples first
  )"));
}

TEST(Scheduler, AWaitingPromptIsLookedUpAgainOnlyWhenThatCanHelp) {
  EXPECT_EQ("", run({.num_blocks = 8, .block_size = 4, .max_num_batched_tokens = 20}, R"(
    submit a prompt=17 max=28
    submit b prompt=17 max=28 base=300
    plan
    span a tokens=17 samples first
    state lookups=2 running=1
    done a=1
    plan
    span a tokens=1 samples
    done a=1
    plan
    span a tokens=1 samples
    done a=1
    plan
    span a tokens=1 samples
    state lookups=2 waiting=1
    done a=1!
    plan
    span b tokens=17 samples first
    state lookups=3
  )"));
  // The same prompt: once the first one's blocks can be hit, so few are missing that both fit.
  EXPECT_EQ("", run({.num_blocks = 8, .block_size = 4, .max_num_batched_tokens = 20}, R"(
    submit a prompt=17 max=24
    submit b prompt=17 max=24
    plan
    span a tokens=17 samples first
    state lookups=2
    plan
    span a tokens=1 samples
    span b tokens=1 hits=16 samples first
    state lookups=3
  )"));
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  const Scheduler scheduler(
      {.num_blocks = 5, .block_size = 4, .max_num_seqs = 1, .max_num_batched_tokens = 16});
  EXPECT_TRUE(scheduler.check_fits(4, 16).ok());
  const Status status = scheduler.check_fits(4, 17);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("16 tokens"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
