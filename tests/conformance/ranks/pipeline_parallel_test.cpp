#include <gtest/gtest.h>

#include <iostream>

#include "conformance/layouts.h"

// What is special to stages; layouts_test.cpp runs every layout with every drafter.

namespace foretoken {
namespace {

class PipelineParallelPressure : public RankTest<Layout> {};

struct Pressure {
  int num_blocks;
  RequestStats stats;  // of the second of two equal runs in one engine
};

// Prompts in chunks, beside one rank.
void run_beside_one_rank(const Layout& layout, Pressure& pressure) {
  const std::vector<Request> requests = layout_requests("eagle3", true, num_test_prompts(16));
  std::vector<std::vector<RequestOutput>> outputs;
  for (const Layout& own : {Layout{}, layout}) {
    EngineConfig config = layout_config(own, {"eagle3", "ngram"});
    config.max_num_batched_tokens = 24;
    config.num_gpu_blocks_override = pressure.num_blocks;
    const auto engine = start_engine(config);
    ASSERT_NE(engine, nullptr);
    run_in_batches(*engine, requests);
    outputs.push_back(run_in_batches(*engine, requests));
    expect_all_free(*engine);
  }
  pressure.stats = sum_of_stats(outputs[1]);
  EXPECT_LE(count_undecided(outputs[0], outputs[1], true, layout.name()), layout.tp > 1 ? 2 : 0);
}

TEST_P(PipelineParallelPressure, PreemptionChangesNothing) {
  Pressure few{.num_blocks = 20, .stats = {}};
  run_beside_one_rank(GetParam(), few);
  std::cout << GetParam().name() << ": preemptions " << few.stats.num_preemptions << "\n";
  EXPECT_TRUE(few.stats.num_preemptions > 0 || num_test_prompts(16) < 16);
}

TEST_P(PipelineParallelPressure, PrefixHitsChangeNothing) {
  Pressure plenty{.num_blocks = 400, .stats = {}};
  run_beside_one_rank(GetParam(), plenty);
  EXPECT_GT(plenty.stats.num_cached_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, PipelineParallelPressure,
                         testing::Values(Layout{.pp = 2}, Layout{.pp = 4},
                                         Layout{.tp = 2, .pp = 2}),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace foretoken
