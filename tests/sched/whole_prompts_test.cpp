#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

SchedulerConfig whole(int num_blocks) {
  return {.num_blocks = num_blocks,
          .block_size = 4,
          .max_num_seqs = 4,
          .max_num_batched_tokens = 8,
          .long_prefill_token_threshold = 2,
          .prefix_caching = false,
          .whole_prompts = true};
}

// Nothing cuts them; one that finds no room waits for a step that has it.
TEST(WholePrompts, AreOneSpan) {
  EXPECT_EQ("", run(whole(60), R"(
    submit a prompt=6 max=30
    submit b prompt=5 max=30 base=300
    plan
    span a tokens=6 samples first
    plan
    span a tokens=1 samples
    span b tokens=5 samples first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
  )"));
}

// One that comes back has its output in spans behind its prompt.
TEST(WholePrompts, AreWholeAfterPreemption) {
  SchedulerConfig config = whole(5);
  config.max_num_batched_tokens = 16;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=7 max=16
    submit b prompt=7 max=16 base=300
    plan
    span a tokens=7 samples first
    span b tokens=7 samples first
    plan
    done a=1 b=1
    state running=1 waiting=1
    plan
    span a tokens=1 samples
    done a=1!
    plan
    span b tokens=7 first
    plan
    span b tokens=1 samples
  )"));
}

// A prompt has its blocks of the windowed group for its step, whatever the window is; behind it
// those free themselves that nobody sees.
TEST(WholePrompts, HaveTheirBlocksUnderAWindow) {
  SchedulerConfig config = whole(60);
  config.num_window_blocks = 5;
  config.window = 3;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=8 max=30
    submit b prompt=7 max=30 base=300
    plan
    span a tokens=8 samples first
    plan
    span a tokens=1 samples
    done a=1
    plan
    span a tokens=1 samples
    span b tokens=7 samples first
  )"));
}

TEST(WholePrompts, LongerThanTheWindowedBlocksAreRefused) {
  SchedulerConfig config = whole(60);
  config.num_window_blocks = 4;
  config.window = 3;
  EXPECT_TRUE(Scheduler(config).check_fits(12, 30).ok());
  const Status status = Scheduler(config).check_fits(13, 30);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("a prompt of 13"), std::string::npos) << status.message();
  config.whole_prompts = false;
  EXPECT_TRUE(Scheduler(config).check_fits(13, 30).ok());
}

TEST(WholePrompts, ThatFitNoStepAreRefused) {
  const Scheduler scheduler(whole(60));
  Sequence sequence;
  sequence.prompt_len = 8;
  EXPECT_TRUE(scheduler.check_whole(sequence).ok());
  sequence.prompt_len = 9;
  EXPECT_NE(scheduler.check_whole(sequence).message().find("--max-num-batched-tokens 9"),
            std::string::npos);
  SchedulerConfig cut = whole(60);
  cut.whole_prompts = false;
  EXPECT_TRUE(Scheduler(cut).check_whole(sequence).ok());
}

}  // namespace
}  // namespace foretoken
