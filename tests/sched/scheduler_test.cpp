#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

std::string run(const SchedulerConfig& config, const char* script) {
  return SchedulerScript(config).run(script);
}

TEST(Scheduler, DecodesWithTwoStepsInFlight) {
  EXPECT_EQ(
      "", run({.num_blocks = 20, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16},
              R"(
    submit a prompt=5 max=20 drafts=3
    plan
    span a tokens=5 samples first
    plan
    span a tokens=1 drafts=3 samples
    done a=1
    plan
    span a tokens=1 drafts=3 samples
    done a=4
    done a=2!
    state running=0 free=19 slots=4
  )"));
}

TEST(Scheduler, CutsPromptsIntoChunksBesideDecodes) {
  EXPECT_EQ("",
            run({.num_blocks = 40, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 8},
                R"(
    submit a prompt=3 max=30 drafts=2
    submit b prompt=11 max=30 base=300
    plan
    span a tokens=3 samples first
    span b tokens=5 first
    plan
    span a tokens=1 drafts=2 samples
    span b tokens=5
    plan
    span a tokens=1 drafts=2 samples
    span b tokens=1 samples
  )"));
}

TEST(Scheduler, NeverGrantsDraftsBeyondTheEnd) {
  EXPECT_EQ(
      "", run({.num_blocks = 20, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16},
              R"(
    submit a prompt=5 max=8 drafts=4
    plan
    span a tokens=5 samples first
    plan
    span a tokens=1 drafts=1 samples
    plan
    span a tokens=1 samples
    plan
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
  EXPECT_EQ("",
            run({.num_blocks = 4, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16},
                R"(
    submit a prompt=6 max=12 drafts=4
    submit b prompt=2 max=12 base=300
    plan
    span a tokens=6 samples first
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
