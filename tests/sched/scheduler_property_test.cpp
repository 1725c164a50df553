#include <gtest/gtest.h>

#include <vector>

#include "sched/random_run.h"
#include "support/short_run.h"

// Thousands of random requests, aborts and accepted counts against a model of the device: whatever
// the order, counts stay in their bounds, every KV entry that is read is right, and all comes free.

namespace foretoken {
namespace {

struct Totals {
  int64_t num_preemptions = 0;
  int64_t num_hit_tokens = 0;
  int64_t num_proposed = 0;
  int64_t num_caught_up = 0;
  int64_t num_found = 0;
};

unsigned num_runs(int whole) { return static_cast<unsigned>(test::repetitions(whole)); }

Totals run_seeds(unsigned num_seeds, const std::vector<int>& windows, int num_stages = 1) {
  Totals totals;
  for (unsigned seed = 0; seed < num_seeds; ++seed) {
    RandomRun run(
        {.seed = seed, .window = windows[seed % windows.size()], .num_stages = num_stages});
    run.run(25);
    EXPECT_EQ(run.problem(), "");
    EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    if (testing::Test::HasFailure()) break;
    totals.num_preemptions += run.stats().num_preemptions;
    totals.num_hit_tokens += run.stats().num_hit_tokens;
    totals.num_proposed += run.device().num_proposed();
    totals.num_caught_up += run.device().num_caught_up();
    totals.num_found += run.device().num_found();
  }
  return totals;
}

TEST(SchedulerProperty, StagesKeepEveryInvariant) {
  for (const int num_stages : {2, 3, 4}) {
    const Totals totals = run_seeds(num_runs(100), {0, 7}, num_stages);
    EXPECT_GT(totals.num_preemptions, test::repetitions(10));
    EXPECT_GT(totals.num_hit_tokens, test::repetitions(100));
    EXPECT_GT(totals.num_proposed, test::repetitions(500));
  }
}

TEST(SchedulerProperty, RandomRunsWithABoundKeepEveryInvariant) {
  int num_bound = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomRun run({.seed = seed,
                   .window = seed % 4 == 0 ? 5 : 0,
                   .num_stages = 1 + static_cast<int>(seed % 3),
                   .bound_rows = 1 + static_cast<int>(seed % 30)});
    run.run(25);
    EXPECT_EQ(run.problem(), "") << "seed " << seed;
    if (testing::Test::HasFailure()) break;
    num_bound += run.num_bound();
  }
  EXPECT_GT(num_bound, 500);
}

TEST(SchedulerProperty, RandomRunsWithSharesKeepEveryInvariant) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomRun run({.seed = seed,
                   .window = seed % 4 == 0 ? 5 : 0,
                   .num_stages = 1 + static_cast<int>(seed % 3),
                   .shares = true});
    run.run(25);
    EXPECT_EQ(run.problem(), "") << "seed " << seed;
    if (testing::Test::HasFailure()) break;
  }
}

TEST(SchedulerProperty, RandomRunsKeepEveryInvariant) {
  const Totals totals = run_seeds(num_runs(400), {0});
  // The runs must have met what they are about.
  EXPECT_GT(totals.num_preemptions, test::repetitions(100));
  EXPECT_GT(totals.num_hit_tokens, test::repetitions(1000));
  EXPECT_GT(totals.num_proposed, test::repetitions(5000));
  EXPECT_GT(totals.num_caught_up, test::repetitions(20000));
  EXPECT_GT(totals.num_found, test::repetitions(500));
}

TEST(SchedulerProperty, RandomRunsWithWindowsKeepEveryInvariant) {
  const Totals totals = run_seeds(num_runs(800), {1, 2, 3, 5, 8, 13, 30, 100});
  EXPECT_GT(totals.num_preemptions, test::repetitions(200));
  EXPECT_GT(totals.num_hit_tokens, test::repetitions(1000));
  EXPECT_GT(totals.num_proposed, test::repetitions(10000));
}

// With host memory for many images or for few.
HostBlockStats run_with_host(unsigned num_seeds, const std::vector<int>& windows,
                             const std::vector<int>& snapshots) {
  HostBlockStats totals;
  for (unsigned seed = 0; seed < num_seeds; ++seed) {
    const int few = seed % 3 == 0 ? 3 : 60;
    RandomRun run({.seed = seed,
                   .window = windows[seed % windows.size()],
                   .num_stages = 1 + static_cast<int>(seed % 5 == 0),
                   .num_host_blocks = few,
                   .num_host_windows = few,
                   .num_host_states = seed % 4 == 0 ? 2 : 30,
                   .num_snapshots = snapshots[seed % snapshots.size()]});
    run.run(25);
    EXPECT_EQ(run.problem(), "") << "seed " << seed;
    if (testing::Test::HasFailure()) break;
    const HostBlockStats& stats = run.host_stats();
    totals.num_queried_tokens += stats.num_queried_tokens;
    totals.num_hit_tokens += stats.num_hit_tokens;
    for (size_t part = 0; part < kNumHostParts; ++part) {
      totals.num_moved_out[part] += stats.num_moved_out[part];
      totals.num_moved_in[part] += stats.num_moved_in[part];
    }
  }
  EXPECT_GE(totals.num_queried_tokens, totals.num_hit_tokens);
  return totals;
}

void expect_moves(const HostBlockStats& totals, HostPart part, int least_out, int least_in) {
  const auto at = static_cast<size_t>(part);
  EXPECT_GT(totals.num_moved_out[at], test::repetitions(least_out));
  EXPECT_GT(totals.num_moved_in[at], test::repetitions(least_in));
}

// Blocks that moved to host memory and back hold what they held, the drafters' entries too.
TEST(SchedulerProperty, RandomRunsWithHostMemoryKeepEveryInvariant) {
  const HostBlockStats totals = run_with_host(num_runs(400), {0}, {0});
  EXPECT_GT(totals.num_hit_tokens, test::repetitions(200));
  expect_moves(totals, HostPart::kFull, 100, 50);
  EXPECT_EQ(totals.num_moved_out[1] + totals.num_moved_out[2], 0);
}

TEST(SchedulerProperty, RandomRunsWithHostMemoryAndWindowsKeepEveryInvariant) {
  const HostBlockStats totals = run_with_host(num_runs(800), {1, 2, 3, 5, 8, 13, 30, 100}, {0});
  EXPECT_GT(totals.num_hit_tokens, test::repetitions(400));
  expect_moves(totals, HostPart::kFull, 200, 100);
  expect_moves(totals, HostPart::kWindowed, 200, 100);
}

TEST(SchedulerProperty, RandomRunsWithHostMemoryAndStatesKeepEveryInvariant) {
  const HostBlockStats totals = run_with_host(num_runs(600), {0, 0, 7, 0, 20}, {2, 40, 5, 1});
  EXPECT_GT(totals.num_hit_tokens, test::repetitions(400));
  expect_moves(totals, HostPart::kFull, 200, 100);
  expect_moves(totals, HostPart::kWindowed, 50, 20);
  expect_moves(totals, HostPart::kStates, 100, 30);
}

// Thousands of requests on one scheduler: images are never more than there are, and all come free.
TEST(SchedulerProperty, HostMemoryIsBoundedOverManyRequests) {
  int64_t num_hit_tokens = 0, num_states_in = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    RandomRun run({.seed = seed,
                   .window = seed % 2 == 0 ? 9 : 0,
                   .num_host_blocks = 40,
                   .num_host_windows = 30,
                   .num_host_states = 5,
                   .num_snapshots = 6});
    run.run(1000);
    EXPECT_EQ(run.problem(), "") << "seed " << seed;
    num_hit_tokens += run.host_stats().num_hit_tokens;
    num_states_in += run.host_stats().num_moved_in[2];
  }
  EXPECT_GT(num_hit_tokens, 300);
  EXPECT_GT(num_states_in, 30);
}

// Rows begin nowhere but where the states of recurrent layers stand, the target's and drafters'.
TEST(SchedulerProperty, RandomRunsWithStatesKeepEveryInvariant) {
  int64_t num_hit_tokens = 0, num_kept = 0, num_brought = 0, num_state_entries = 0;
  for (unsigned seed = 0; seed < num_runs(300); ++seed) {
    RandomRun run({.seed = seed,
                   .window = seed % 4 == 0 ? 7 : 0,
                   .num_stages = 1 + static_cast<int>(seed % 5 == 0),
                   .num_snapshots = seed % 3 == 0 ? 2 : 40});
    run.run(25);
    EXPECT_EQ(run.problem(), "") << "seed " << seed;
    if (testing::Test::HasFailure()) break;
    num_hit_tokens += run.stats().num_hit_tokens;
    num_kept += run.num_kept();
    num_brought += run.num_brought();
    num_state_entries += run.device().num_state_entries();
  }
  EXPECT_GT(num_hit_tokens, test::repetitions(2000));
  EXPECT_GT(num_kept, test::repetitions(1000));
  EXPECT_GT(num_brought, test::repetitions(200));
  EXPECT_GT(num_state_entries, test::repetitions(100));
}

TEST(SchedulerProperty, TheSameCallsGiveTheSamePlans) {
  for (unsigned seed = 1000; seed < 1020; ++seed) {
    RandomRun first({.seed = seed, .window = 6});
    RandomRun second({.seed = seed, .window = 6});
    first.run(25);
    second.run(25);
    EXPECT_FALSE(first.trace().empty());
    EXPECT_EQ(first.trace(), second.trace()) << "seed " << seed;
  }
}

// A scheduler that takes the window for one position shorter than the device does must be caught.
TEST(SchedulerProperty, BlocksFreedTooEarlyAreSeen) {
  int num_seen = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomRun run({.seed = seed, .window = 7, .device_window = 8});
    run.run(25);
    if (!run.problem().empty()) ++num_seen;
  }
  EXPECT_GT(num_seen, 20);
}

}  // namespace
}  // namespace foretoken
