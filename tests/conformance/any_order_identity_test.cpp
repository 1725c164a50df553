#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <vector>

#include "conformance/harness.h"
#include "support/folders.h"

// With --batch-invariant off the bits of a prompt's attention may depend on where the prompt is cut
// and on how many rows its step has room for, since that chooses kernels; here all prompts but the
// one of a token are so long that they go to the same one. Drafts, steps in flight and graphs
// change nothing. Random weights, whose logits lie close together, tell other bits at once.

namespace foretoken {
namespace {

constexpr int kOutputTokens = 48;

// The CPU has one order: there the lengths matter less than what they take.
bool has_one_order() { return test_device_name() == "cpu"; }
int longest_prompt() { return has_one_order() ? 300 : 900; }

class AnyOrderIdentity : public ::testing::TestWithParam<bool> {
 protected:
  // Of 1 to longest_prompt() tokens with repeats, so that drafts are found.
  static std::vector<Request> requests() {
    std::vector<Request> requests(num_test_prompts(has_one_order() ? 4 : 12));
    std::mt19937 random(11);
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t length = i == 0 ? 1 : longest_prompt() - 71 * (i - 1);
      const size_t period = 5 + 3 * i;
      auto& ids = requests[i].prompt_token_ids;
      for (size_t j = 0; j < length; ++j) {
        ids.push_back(j < period ? static_cast<int32_t>(3 + random() % 20000) : ids[j - period]);
      }
      requests[i].sampling.max_tokens = kOutputTokens;
      requests[i].sampling.temperature = GetParam() ? 0.8f : 0.0f;
      requests[i].sampling.top_k = GetParam() ? 2 : 0;
      requests[i].sampling.seed = 40 + i;
      requests[i].sampling.ignore_eos = true;
    }
    return requests;
  }

  static RunResult run(Variant variant) {
    variant.max_batched_tokens = 16 * longest_prompt();  // no prompt is cut
    EngineConfig config =
        config_of(variant, std::string(foretoken::kSourceFolder) + "/bench/configs/llama-68m");
    config.load_format = "dummy";
    config.skip_tokenizer_init = true;
    config.batch_invariant = "off";
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    if (!made.ok()) return {};
    RunResult result = run_requests(*engine, variant, requests());
    expect_all_free(*engine);
    std::cout << "device=" << test_device_name() << " attention "
              << engine->info().attention_backend << ", drafted " << result.stats.num_draft_tokens
              << ", accepted " << result.stats.num_accepted_tokens << "\n";
    return result;
  }
};

TEST_P(AnyOrderIdentity, DraftsNeighboursStepsAndGraphs) {
  const RunResult alone = run({});
  const RunResult drafted = run({.num_draft_tokens = 4});
  EXPECT_EQ(count_differences(alone, drafted, "drafts"), 0);
  EXPECT_GT(drafted.stats.num_accepted_tokens, 0);
  EXPECT_LT(drafted.stats.num_accepted_tokens, drafted.stats.num_draft_tokens);
  EXPECT_EQ(count_differences(alone, run({.num_draft_tokens = 4, .batch = 16}), "drafts, together"),
            0);
  EXPECT_EQ(
      count_differences(alone, run({.num_draft_tokens = 4, .steps_in_flight = 2, .batch = 16}),
                        "drafts, together, two in flight"),
      0);
  for (const char* mode : {"NONE", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}) {
    EXPECT_EQ(count_differences(
                  alone, run({.num_draft_tokens = 4, .batch = 16, .graph_mode = mode}), mode),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnyOrderIdentity, ::testing::Bool(), [](const auto& param) {
  return param.param ? std::string("Sampled") : std::string("Greedy");
});

}  // namespace
}  // namespace foretoken
