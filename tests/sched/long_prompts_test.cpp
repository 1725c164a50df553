#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

TEST(Scheduler, ALongPromptLeavesRowsToOthers) {
  EXPECT_EQ("", run({.num_blocks = 200,
                     .block_size = 4,
                     .max_num_seqs = 3,
                     .max_num_batched_tokens = 16,
                     .long_prefill_token_threshold = 4},
                    R"(
    submit a prompt=80 max=99
    plan
    span a tokens=16 first
    submit b prompt=3 max=20 base=300
    submit c prompt=30 max=40 base=500
    plan
    span a tokens=4
    span b tokens=3 samples first
    span c tokens=4 first
    submit d prompt=3 max=20 base=700
    plan
    span a tokens=4
    span b tokens=1 samples
    span c tokens=4
    finish b
    finish c
    done a=0
    done a=0 b=1 c=0
    done a=0 b=1 c=0
    plan
    span a tokens=4
    span d tokens=3 samples first
    done a=0 d=1!
    plan
    span a tokens=16
  )"));
}

TEST(Scheduler, LongPromptsTogetherLeaveARowToThoseBehind) {
  EXPECT_EQ("", run({.num_blocks = 200,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 16,
                     .long_prefill_token_threshold = 8},
                    R"(
    submit a prompt=80 max=99
    submit b prompt=80 max=99 base=300
    submit c prompt=3 max=20 base=500
    plan
    span a tokens=8 first
    span b tokens=7 first
    span c tokens=1 first
    plan
    span a tokens=8
    span b tokens=7
    span c tokens=1
    plan
    span a tokens=8
    span b tokens=7
    span c tokens=1 samples
    plan
    span a tokens=8
    span b tokens=7
    span c tokens=1 samples
  )"));
}

// Waves of 16 rows: what is up to 4 rows beyond one waits for the next step where others run, and
// what is more does not.
TEST(Scheduler, ChunksEndWithAWaveBesideOthers) {
  EXPECT_EQ("", run({.num_blocks = 200,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 64,
                     .wave_rows = 16},
                    R"(
    submit a prompt=18 max=40
    plan
    span a tokens=18 samples first
    submit b prompt=17 max=40 base=300
    plan
    span a tokens=1 samples
    span b tokens=15 first
    plan
    span a tokens=1 samples
    span b tokens=2 samples
    submit c prompt=19 max=40 base=500
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=19 samples first
    submit d prompt=12 max=40 base=700
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=1 samples
    span d tokens=12 samples first
  )"));
}

TEST(Scheduler, PacedPromptsShareTheirRowsBesideOthers) {
  EXPECT_EQ("", run({.num_blocks = 200,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 16,
                     .paced_prompt_len = 10},
                    R"(
    pace 6 14
    submit a prompt=80 max=99
    plan
    span a tokens=14 first
    submit b prompt=3 max=20 base=300
    plan
    span a tokens=6
    span b tokens=3 samples first
    submit c prompt=60 max=70 base=500
    pace 4 14
    plan
    span a tokens=4
    span b tokens=1 samples
    span c tokens=4 first
    submit d prompt=8 max=20 base=700
    plan
    span a tokens=2
    span b tokens=1 samples
    span c tokens=2
    span d tokens=8 samples first
    finish b
    finish d
    plan
    span a tokens=4
    span c tokens=4
  )"));
}

// One client with long prompts, one after the other, is alone with each of them.
TEST(Scheduler, LongPromptsAreNotPacedBesideOnesThatAreThrough) {
  const std::string script = R"(
    pace 6 14
    submit a prompt=20 max=LAST
    plan
    span a tokens=14 first
    plan
    span a tokens=6 samples
    submit b prompt=40 max=60 base=300
    plan
)";
  const auto with = [&](const std::string& last, const std::string& spans) {
    std::string text = script + spans;
    text.replace(text.find("LAST"), 4, last);
    return run({.num_blocks = 200,
                .block_size = 4,
                .max_num_seqs = 4,
                .max_num_batched_tokens = 16,
                .paced_prompt_len = 10},
               text);
  };
  EXPECT_EQ("", with("21", "span b tokens=14 first\n"));
  EXPECT_EQ("", with("23", R"(
    span a tokens=1 samples
    span b tokens=6 first
    finish a
    plan
    span b tokens=14
  )"));
}

// As an engine without a server has them: no more steps than the prompts' tokens fill.
TEST(Scheduler, WithoutPacingPromptsFillStepsBesideSequencesThatDecode) {
  EXPECT_EQ(
      "", run({.num_blocks = 200, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 82},
              R"(
    submit a prompt=79 max=95
    submit b prompt=79 max=95 base=300
    submit c prompt=79 max=95 base=500
    submit d prompt=79 max=95 base=700
    plan
    span a tokens=79 samples first
    span b tokens=3 first
    plan
    span a tokens=1 samples
    span b tokens=76 samples
    span c tokens=5 first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=74 samples
    span d tokens=6 first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=1 samples
    span d tokens=73 samples
  )"));
}

TEST(Scheduler, WithoutAThresholdALongPromptTakesWhatIsLeft) {
  EXPECT_EQ(
      "", run({.num_blocks = 200, .block_size = 4, .max_num_seqs = 3, .max_num_batched_tokens = 16},
              R"(
    submit a prompt=80 max=99
    submit b prompt=3 max=20 base=300
    plan
    span a tokens=16 first
    plan
    span a tokens=16
  )"));
}

}  // namespace
}  // namespace foretoken
