#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/layouts.h"

// What is special to ranks that share layers; layouts_test.cpp runs every layout with every
// drafter.

namespace foretoken {
namespace {

// Stages split no sum, so that every id and every count is one rank's.
class PipelineParallel : public RankTest<int> {};

TEST_P(PipelineParallel, EveryArchitecture) {
  for (const std::string& architecture : dialled_architectures()) {
    const test::DialledSet& set = test::DialledSet::of(architecture);
    const std::vector<Request> requests = dialled_requests(set, "eagle", 4, 60);
    std::vector<RunResult> runs;
    for (const int stages : {1, std::min(GetParam(), set.shape().num_layers)}) {
      EngineConfig config = config_of({.num_draft_tokens = 2,
                                       .drafter = "eagle",
                                       .steps_in_flight = 2,
                                       .max_batched_tokens = 64},
                                      set);
      config.cpu_threads = 1;
      config.parallel.pipeline_parallel_size = stages;
      const auto engine = start_engine(config);
      ASSERT_NE(engine, nullptr);
      RunResult& result = runs.emplace_back();
      for (const RequestOutput& output : engine->generate(requests)) {
        EXPECT_TRUE(output.status.ok()) << output.status.message();
        result.ids.push_back(output.token_ids);
        result.stats += output.stats;
      }
    }
    EXPECT_EQ(runs[0].ids, runs[1].ids) << architecture;
    EXPECT_EQ(runs[0].stats.num_accepted_tokens, runs[1].stats.num_accepted_tokens) << architecture;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, PipelineParallel, testing::Values(2, 4),
                         [](const auto& test) { return "PP" + std::to_string(test.param); });

TEST(TensorParallelStart, SizesThatDoNotFitAreNamed) {
  if (const std::string missing = missing_devices(3); !missing.empty()) GTEST_SKIP() << missing;
  const EngineConfig config = layout_config({.tp = 3}, {});
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("--tensor-parallel-size 3"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
