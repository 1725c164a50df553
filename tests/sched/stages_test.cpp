#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

// A sequence is in at most one of three steps in a row, and steps share the sequences out.
TEST(Scheduler, StagesWorkOnDifferentSequences) {
  EXPECT_EQ("", run({.num_blocks = 60,
                     .block_size = 4,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 32,
                     .num_stages = 3},
                    R"(
    submit a prompt=5 max=20
    submit b prompt=5 max=20 base=300
    submit c prompt=5 max=20 base=400
    submit d prompt=5 max=20 base=500
    plan
    span a tokens=5 samples first
    span b tokens=5 samples first
    plan
    span c tokens=5 samples first
    span d tokens=5 samples first
    plan
    done a=1 b=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    done c=1 d=1
    submit e prompt=5 max=20 base=600
    plan
    span c tokens=1 samples
    span d tokens=1 samples
    plan
    span e tokens=5 samples first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    done a=1 b=1
    done c=1! d=1
    done e=1
    plan
    span d tokens=1 samples
    span e tokens=1 samples
  )"));
}

// One alone waits for its own step; its chunks too.
TEST(Scheduler, ALoneSequenceIsInOneStepAtATime) {
  EXPECT_EQ("", run(drafting({.num_blocks = 60,
                              .block_size = 4,
                              .max_num_seqs = 8,
                              .max_num_batched_tokens = 8,
                              .num_stages = 2}),
                    R"(
    submit a prompt=12 max=30 drafts=2
    plan limit=2
    span a tokens=8 first
    plan limit=2
    done a=0
    plan limit=2
    span a tokens=4 limit=2 samples
    plan limit=2
    state passes=0 decoding=0
    done a=1
    state decoding=1
    plan limit=2
    span a tokens=1 drafts=2 limit=2 samples
    done a=3!
    state running=0 free=59
  )"));
}

// Of five, three are in the one step and two in the other; whoever waited goes first.
TEST(Scheduler, SharesStayEvenWhenSequencesEnd) {
  EXPECT_EQ("", run({.num_blocks = 60,
                     .block_size = 4,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 32,
                     .num_stages = 2},
                    R"(
    submit a prompt=3 max=20
    submit b prompt=3 max=20 base=300
    submit c prompt=3 max=20 base=400
    submit d prompt=3 max=20 base=500
    submit e prompt=3 max=20 base=600
    plan
    span a tokens=3 samples first
    span b tokens=3 samples first
    span c tokens=3 samples first
    plan
    span d tokens=3 samples first
    span e tokens=3 samples first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=1 samples
    done a=1 b=1 c=1
    done d=1! e=1!
    plan
    done a=1 b=1 c=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    plan
    span c tokens=1 samples
  )"));
}

}  // namespace
}  // namespace foretoken
