#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/layouts.h"
#include "draft/registry.h"

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

class GrammarOverRanks : public RankTest<Layout> {};

// Rank 0 alone has masks: what is drafted without them is repaired with one rank and refused with
// several, and the text is the same.
TEST_P(GrammarOverRanks, DraftsWithoutMasksLeaveTheText) {
  const std::vector<std::string> methods = {"ngram", "suffix", "pard"};
  std::vector<std::vector<RequestOutput>> outputs(2);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto engine = start_engine(layout_config(i == 0 ? Layout{} : GetParam(), methods));
    ASSERT_NE(engine, nullptr);
    for (const std::string& method : methods) {
      ASSERT_TRUE(find_drafter(method).value()->traits.proposes_unmasked) << method;
      std::vector<Request> requests = layout_requests(method, true, num_test_prompts(8));
      for (Request& request : requests) {
        request.sampling.max_tokens = 60;
        request.sampling.ignore_eos = false;
        request.sampling.structured_outputs.emplace();
        request.sampling.structured_outputs->regex = "(The (cat|dog) (sat|ran) (in|on) it\\. ){2}";
      }
      const std::vector<RequestOutput> of_method = run_in_batches(*engine, requests);
      EXPECT_GT(sum_of_stats(of_method).num_accepted_tokens, 0) << method;
      outputs[i].insert(outputs[i].end(), of_method.begin(), of_method.end());
    }
    expect_all_free(*engine);
  }
  EXPECT_LE(count_undecided(outputs[0], outputs[1], true, "grammar"), GetParam().tp > 1 ? 1 : 0);
  for (const RequestOutput& output : outputs[1]) {
    EXPECT_EQ(output.finish_reason, FinishReason::kStop) << output.text;
    EXPECT_TRUE(output.text.starts_with("The ")) << output.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, GrammarOverRanks,
                         testing::Values(Layout{.tp = 2}, Layout{.pp = 2}),
                         [](const auto& test) { return test.param.name(); });

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
