#include <gtest/gtest.h>

#include <atomic>
#include <iostream>

#include "conformance/drafter_cases.h"
#include "engine/engine_impl.h"
#include "engine/step/shape/graph_mode.h"
#include "support/counting_queue.h"

// How a step is enqueued changes no id and no count: every graph mode with every drafter, and the
// queue calls that each makes.

namespace foretoken {
namespace {

constexpr int kGraphTokens = 32;
constexpr const char* kModes[] = {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY",
                                  "FULL_AND_PIECEWISE"};

class GraphModes : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> graph_prompts() { return bench_prompts(num_test_prompts(6)); }

TEST_P(GraphModes, EqualIds) {
  const auto run = [&](const char* mode, bool drafts, bool sampled) {
    const Variant variant{.name = mode, .steps_in_flight = 2, .batch = 6, .max_batched_tokens = 64};
    EngineConfig config = config_of(variant, bundled_model());
    config.cudagraph_mode = mode;
    if (drafts) {
      config.speculative = {bundled_drafter(GetParam(), 3).config};
      config.speculative[0].length_policy = "fixed";
    }
    return run_config(config, variant, graph_prompts(), sampled, kGraphTokens);
  };
  for (const bool sampled : {false, true}) {
    const RunResult base = run("FULL", false, sampled);
    for (const char* mode : kModes) {
      const RunResult other = run(mode, true, sampled);
      EXPECT_EQ(count_differences(base, other, GetParam() + " " + mode), 0);
      EXPECT_GT(other.stats.num_accepted_tokens, 0) << mode;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphModes, testing::ValuesIn(drafter_names()),
                         [](const auto& test) { return test.param; });

class GraphModeCounts : public ::testing::TestWithParam<const char*> {};

// On dialled checkpoints, for 1, 2 and 3 steps in flight.
TEST_P(GraphModeCounts, EqualForEveryNumberOfStepsInFlight) {
  const test::DialledSet& set = test::DialledSet::of();
  const std::string drafter = "eagle";
  const std::vector<Request> requests = dialled_requests(set, drafter, 6, 40);
  const Variant base{.num_draft_tokens = 3, .drafter = drafter, .steps_in_flight = 1, .batch = 6};
  const RunResult one = run_dialled(base, set, requests);
  const double acceptance = static_cast<double>(one.stats.num_accepted_tokens) /
                            static_cast<double>(one.stats.num_draft_tokens);
  EXPECT_GT(acceptance, 0.3);
  EXPECT_LT(acceptance, 0.95);
  for (const int steps_in_flight : {1, 2, 3}) {
    Variant variant = base;
    variant.name = GetParam();
    variant.graph_mode = GetParam();
    variant.steps_in_flight = steps_in_flight;
    const RunResult other = run_dialled(variant, set, requests);
    EXPECT_EQ(count_differences(one, other, variant.describe()), 0);
    EXPECT_EQ(other.stats.num_draft_tokens, one.stats.num_draft_tokens) << variant.describe();
    EXPECT_EQ(other.stats.num_accepted_tokens, one.stats.num_accepted_tokens) << variant.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphModeCounts, testing::ValuesIn(kModes),
                         [](const auto& test) { return test.param; });

// Of one engine after its start: steps, replays and single ops.
struct Launches {
  int64_t num_steps = 0;
  int num_replays = 0;
  int num_ops = 0;
};

Launches count_launches(const EngineConfig& config) {
  test::CountingQueue* counting = nullptr;
  TestHooks hooks;
  hooks.wrap_queue = [&](std::unique_ptr<Queue> real) {
    auto queue = std::make_unique<test::CountingQueue>(std::move(real));
    counting = queue.get();
    return queue;
  };
  const auto engine = EngineImpl::create(config, hooks);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  if (!engine.ok()) return {};
  counting->clear();
  std::vector<Request> requests(3);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = "Once upon a time there was";
    requests[i].sampling.max_tokens = 30;
    requests[i].sampling.temperature = i == 0 ? 1.0f : 0.0f;
    requests[i].sampling.ignore_eos = true;
  }
  for (const RequestOutput& output : engine.value()->generate(requests)) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
  }
  expect_all_free(*engine.value());
  return {engine.value()->stats().num_steps, counting->num_replays, counting->num_ops};
}

// One launch a step with every drafter and all its passes.
TEST_P(GraphModes, LaunchesOfAStep) {
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_model());
  config.speculative = {bundled_drafter(GetParam(), 3).config};
  config.speculative[0].length_policy = "fixed";
  const Launches full = count_launches(config);
  EXPECT_GT(full.num_steps, 5);
  EXPECT_EQ(full.num_replays, full.num_steps);
  EXPECT_EQ(full.num_ops, 0);
  config.cudagraph_mode = "PIECEWISE";
  const Launches pieces = count_launches(config);
  EXPECT_EQ(pieces.num_replays, pieces.num_ops + pieces.num_steps);
  config.enforce_eager = true;
  const Launches none = count_launches(config);
  EXPECT_EQ(none.num_replays, 0);
  EXPECT_GT(none.num_ops, pieces.num_ops);
  std::cout << "device=" << test_device_name() << " " << GetParam() << ", launches a step: FULL 1"
            << ", PIECEWISE "
            << static_cast<double>(pieces.num_replays + pieces.num_ops) /
                   static_cast<double>(pieces.num_steps)
            << ", NONE " << static_cast<double>(none.num_ops) / static_cast<double>(none.num_steps)
            << "\n";
}

}  // namespace
}  // namespace foretoken
