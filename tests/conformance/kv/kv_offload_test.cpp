#include <gtest/gtest.h>

#include <iostream>

#include "conformance/drafter_cases.h"
#include "conformance/harness.h"
#include "support/test_device.h"

// KV blocks that went to host memory and came back are those that never left: equal ids, drafts and
// hits, with every drafter's entries and taps; preempted, cancelled and with steps in flight.

namespace foretoken {
namespace {

constexpr int kOffloadPrompts = 8;
constexpr int kOffloadTokens = 32;
constexpr int kOffloadFewBlocks = 26;  // hardly more than one sequence at full length

struct OffloadRun {
  RunResult first;
  RunResult second;  // of the same prompts once more
  OffloadStats offload;
};

EngineConfig offload_config(const Variant& variant, const std::string& drafter, bool on) {
  EngineConfig config = config_of(variant, bundled_model());
  if (!drafter.empty()) config.speculative = {bundled_drafter(drafter, 3).config};
  if (on) config.kv_offloading_size = 0.25;
  return config;
}

std::vector<Request> offload_requests(bool sampled) {
  std::vector<Request> requests;
  for (const std::string& prompt : bench_prompts(kOffloadPrompts)) {
    Request& request = requests.emplace_back();
    request.prompt = prompt;
    request.sampling.max_tokens = kOffloadTokens;
    request.sampling.temperature = sampled ? 0.8f : 0.0f;
    request.sampling.seed = 500 + static_cast<int64_t>(requests.size());
    request.sampling.ignore_eos = true;
  }
  return requests;
}

OffloadRun run_twice(const EngineConfig& config, const Variant& variant, bool sampled) {
  OffloadRun run;
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return run;
  const std::vector<Request> requests = offload_requests(sampled);
  run.first = run_requests(*engine, variant, requests);
  run.second = run_requests(*engine, variant, requests);
  expect_all_free(*engine);
  run.offload = engine->stats().offload;
  return run;
}

void expect_equal_runs(const RunResult& one, const RunResult& other, const std::string& what) {
  EXPECT_EQ(count_differences(one, other, what), 0);
  EXPECT_EQ(one.stats.num_draft_tokens, other.stats.num_draft_tokens) << what;
  EXPECT_EQ(one.stats.num_accepted_tokens, other.stats.num_accepted_tokens) << what;
  EXPECT_EQ(one.stats.num_cached_tokens, other.stats.num_cached_tokens) << what;
}

class KvOffloadOf : public ::testing::TestWithParam<SampledDrafter> {};

// One after another, so that what a request finds is known: all blocks of an earlier run, on the
// device where there is room for them, otherwise in host memory.
TEST_P(KvOffloadOf, HostMemoryIsAsGoodAsTheDevice) {
  const auto& [drafter, sampled] = GetParam();
  Variant variant{.name = "offload", .steps_in_flight = 2, .prefix_caching = true};
  const OffloadRun roomy = run_twice(offload_config(variant, drafter, false), variant, sampled);
  variant.num_blocks = kOffloadFewBlocks;
  const OffloadRun moved = run_twice(offload_config(variant, drafter, true), variant, sampled);
  expect_equal_runs(roomy.first, moved.first, drafter + ", first");
  expect_equal_runs(roomy.second, moved.second, drafter + ", second");
  std::cout << "device=" << test_device_name() << " " << drafter << ": queried "
            << moved.offload.num_queried_tokens << ", hit " << moved.offload.num_hit_tokens
            << ", bytes out " << moved.offload.bytes_out << ", in " << moved.offload.bytes_in
            << ", drafted " << moved.second.stats.num_draft_tokens << ", accepted "
            << moved.second.stats.num_accepted_tokens << "\n";
  EXPECT_GT(moved.offload.num_hit_tokens, 0);
  EXPECT_LE(moved.offload.num_hit_tokens, moved.offload.num_queried_tokens);
  EXPECT_GT(moved.offload.bytes_in, 0);
  EXPECT_GE(moved.offload.bytes_out, moved.offload.bytes_in / 2);
  EXPECT_EQ(roomy.offload.num_queried_tokens, 0);
  EXPECT_EQ(roomy.offload.bytes_out, 0);
  EXPECT_GT(moved.second.stats.num_accepted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(All, KvOffloadOf, ::testing::ValuesIn(sampled_drafters()),
                         [](const auto& param) {
                           return param.param.drafter +
                                  (param.param.sampled ? "Sampled" : "Greedy");
                         });

// All at once in so few blocks that sequences are preempted and find their own blocks again.
void expect_same_preempted(const std::string& drafter, const std::string& kv_cache_dtype) {
  Variant variant{.batch = kOffloadPrompts, .kv_cache_dtype = kv_cache_dtype};
  const OffloadRun plain = run_twice(offload_config(variant, "", false), variant, true);
  variant.num_blocks = kOffloadFewBlocks;
  variant.prefix_caching = true;
  for (const int steps_in_flight : {1, 2, 3}) {
    variant.steps_in_flight = steps_in_flight;
    const OffloadRun moved = run_twice(offload_config(variant, drafter, true), variant, true);
    const std::string what = drafter + " " + variant.describe();
    EXPECT_EQ(count_differences(plain.first, moved.first, what), 0);
    EXPECT_EQ(count_differences(plain.first, moved.second, what), 0);
    EXPECT_GT(moved.first.stats.num_preemptions + moved.second.stats.num_preemptions, 0);
    EXPECT_GT(moved.offload.num_hit_tokens, 0);
  }
}

TEST(KvOffload, PreemptedSequencesGoOnAsTheyWere) { expect_same_preempted("", "auto"); }
TEST(KvOffload, PreemptedSequencesGoOnAsTheyWereWithDrafts) {
  expect_same_preempted("eagle3", "auto");
}
TEST(KvOffload, ScalesMoveWithTheirEntries) { expect_same_preempted("draft_model", "int8"); }

// Each rank keeps its part of the same blocks.
class KvOffloadRanks : public ::testing::TestWithParam<const char*> {};

TEST_P(KvOffloadRanks, MoveTheirParts) {
  const std::string layout = GetParam();
  Variant variant{.steps_in_flight = 2, .batch = kOffloadPrompts, .prefix_caching = true};
  variant.num_blocks = kOffloadFewBlocks;
  const auto run = [&](bool on) {
    EngineConfig config = offload_config(variant, "eagle3", on);
    ParallelConfig& parallel = config.parallel;
    parallel.tensor_parallel_size = layout == "PP2" ? 1 : 2;
    parallel.pipeline_parallel_size = layout == "PP2" ? 2 : 1;
    return run_twice(config, variant, true);
  };
  if (const std::string missing = missing_devices(2); !missing.empty()) GTEST_SKIP() << missing;
  const OffloadRun plain = run(false);
  const OffloadRun moved = run(true);
  EXPECT_EQ(count_differences(plain.first, moved.first, layout), 0);
  EXPECT_EQ(count_differences(plain.second, moved.second, layout), 0);
  EXPECT_GT(moved.offload.num_hit_tokens, 0);
  EXPECT_GT(moved.second.stats.num_accepted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(All, KvOffloadRanks, ::testing::Values("TP2", "PP2"),
                         [](const auto& param) { return std::string(param.param); });

// Host memory for two blocks: most images are given up before anybody asks.
TEST(KvOffload, LittleHostMemoryIsNoHarm) {
  Variant variant{.batch = kOffloadPrompts};
  const OffloadRun plain = run_twice(offload_config(variant, "", false), variant, false);
  variant.num_blocks = kOffloadFewBlocks;
  variant.prefix_caching = true;
  variant.steps_in_flight = 2;
  EngineConfig config = offload_config(variant, "eagle3", true);
  config.kv_offloading_size = 0.001;
  const OffloadRun moved = run_twice(config, variant, false);
  EXPECT_EQ(count_differences(plain.first, moved.first, "little"), 0);
  EXPECT_EQ(count_differences(plain.first, moved.second, "little"), 0);
  EXPECT_GT(moved.offload.bytes_out, 0);
}

TEST(KvOffload, CancelledSequencesHarmNobody) {
  const Variant variant{.name = "cancelled",
                        .steps_in_flight = 2,
                        .num_blocks = kOffloadFewBlocks,
                        .prefix_caching = true};
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(offload_config(variant, "eagle3", true), &engine);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<Request> requests = offload_requests(true);
  const RunResult alone = run_requests(*engine, variant, requests);
  for (size_t i = 1; i < requests.size(); ++i) {
    for (const size_t after : {size_t{0}, size_t{1}, size_t{7}}) {
      expect_cancel_harms_nobody(*engine, requests[i], requests[i - 1], alone.ids[i - 1], after);
    }
  }
  EXPECT_GT(engine->stats().offload.num_hit_tokens, 0);
}

// What cannot work says so at the start.
TEST(KvOffload, RefusesWithOneSentence) {
  EngineConfig config = offload_config({.prefix_caching = true}, "", true);
  std::unique_ptr<Engine> engine;
  config.enable_prefix_caching = false;
  EXPECT_NE(make_engine(config, &engine).message().find("--enable-prefix-caching off"),
            std::string::npos);
  config.enable_prefix_caching = true;
  config.kv_offloading_size = 1e-7;
  EXPECT_NE(make_engine(config, &engine).message().find("--kv-offloading-size has no room"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
