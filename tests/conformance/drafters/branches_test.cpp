#include <gtest/gtest.h>

#include <cctype>
#include <iostream>
#include <map>
#include <utility>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"
#include "draft/registry.h"
#include "model/golden.h"

// Trees of drafts (docs/decisions/0047): other drafts for the same positions, in slots that follow
// a sequence, leave the ids as they are and take fewer steps.

namespace foretoken {
namespace {

constexpr int kBranchTokens = 64;
constexpr int kFewBranchBlocks = 26;  // hardly more than one sequence at full length

std::vector<SampledDrafter> branching_drafters() {
  std::vector<SampledDrafter> cases;
  for (const SampledDrafter& each : sampled_drafters()) {
    if (declared_traits(each.drafter).branches) cases.push_back(each);
  }
  return cases;
}

class Branches : public ::testing::TestWithParam<SampledDrafter> {
 protected:
  static const RunResult& base(bool sampled, int num_prompts) {
    static std::map<std::pair<bool, int>, RunResult> results;
    RunResult& result = results[{sampled, num_prompts}];
    if (result.ids.empty()) {
      result = run_variant({.batch = 32}, bundled_model(), bench_prompts(num_prompts), sampled,
                           kBranchTokens);
    }
    return result;
  }

  SpeculativeConfig drafter(int num_draft_tokens, int num_branches = 7) const {
    SpeculativeConfig config = bundled_drafter(GetParam().drafter, num_draft_tokens).config;
    config.num_branches = num_branches;
    return config;
  }

  RunResult expect_same(const Variant& variant, const SpeculativeConfig& config,
                        int num_prompts = 200) {
    const bool sampled = GetParam().sampled;
    num_prompts = num_test_prompts(num_prompts);
    const RunResult other =
        run_with_drafters(variant, {config}, bench_prompts(num_prompts), sampled, kBranchTokens);
    const std::string what = GetParam().drafter + ", " + variant.describe();
    const int differing = count_differences(base(sampled, num_prompts), other, what);
    std::cout << "device=" << test_device_name() << " " << what << ", " << config.num_branches
              << " branches: " << differing << " of " << other.ids.size()
              << " prompts differ, drafted " << other.stats.num_draft_tokens << ", accepted "
              << other.stats.num_accepted_tokens << ", preemptions " << other.stats.num_preemptions
              << "\n";
    EXPECT_EQ(differing, 0);
    return other;
  }
};

// All are verified with the same drafts beside them, so that more are accepted in fewer steps.
TEST_P(Branches, TakeFewerSteps) {
  const RunResult chain = expect_same({.name = "alone"}, drafter(4, 0));
  const RunResult tree = expect_same({.name = "alone"}, drafter(4));
  EXPECT_LT(tree.stats.num_draft_tokens, chain.stats.num_draft_tokens);
  EXPECT_GT(tree.stats.num_accepted_tokens, chain.stats.num_accepted_tokens);
}

TEST_P(Branches, Everything) {
  const RunResult result = expect_same({.name = "everything",
                                        .steps_in_flight = 2,
                                        .batch = 32,
                                        .max_batched_tokens = 64,
                                        .num_blocks = 4096,
                                        .prefix_caching = true,
                                        .warm = true},
                                       drafter(4));
  EXPECT_GT(result.stats.num_cached_tokens, 0);
}

TEST_P(Branches, Preempted) {
  const RunResult result = expect_same({.name = "preempted",
                                        .steps_in_flight = 2,
                                        .batch = 32,
                                        .num_blocks = kFewBranchBlocks,
                                        .prefix_caching = true},
                                       drafter(4));
  EXPECT_GT(result.stats.num_preemptions, 0);
}

TEST_P(Branches, Adaptive) {
  SpeculativeConfig config = drafter(5);
  config.length_policy = "adaptive";
  expect_same({.name = "adaptive", .steps_in_flight = 2, .batch = 8}, config, 60);
}

TEST_P(Branches, ProbabilisticDrafts) {
  SpeculativeConfig config = drafter(3);
  config.draft_sample_method = "probabilistic";
  expect_same({.name = "probabilistic", .steps_in_flight = 2, .batch = 16}, config, 60);
}

TEST_P(Branches, ReducedVocabulary) {
  SpeculativeConfig config = drafter(3);
  config.draft_vocab_size = 700;
  expect_same({.name = "reduced vocabulary", .steps_in_flight = 2, .batch = 16}, config, 60);
}

TEST_P(Branches, AsManyAsThereCanBe) {
  expect_same({.name = "64 drafts", .steps_in_flight = 2, .batch = 2},
              drafter(kMaxSpeculativeTokens, 32), 16);
}

// As many are drafted and accepted with one step in flight as with two or three.
TEST_P(Branches, CountsDoNotDependOnStepsInFlight) {
  const SpeculativeConfig config = drafter(4);
  const RunResult one = expect_same({.name = "one step"}, config, 60);
  for (const int steps : {2, 3}) {
    const RunResult more =
        expect_same({.name = "more steps", .steps_in_flight = steps}, config, 60);
    EXPECT_EQ(more.stats.num_draft_tokens, one.stats.num_draft_tokens) << steps;
    EXPECT_EQ(more.stats.num_accepted_tokens, one.stats.num_accepted_tokens) << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Branches, ::testing::ValuesIn(branching_drafters()),
                         [](const auto& param) {
                           return param.param.drafter +
                                  (param.param.sampled ? "Sampled" : "Greedy");
                         });

// Families whose rows attend to windows, latents, chosen positions or compressed entries, each
// with itself as its draft model, whose greedy drafts a temperature often refuses.
struct BranchedFamily {
  const char* golden;
  Layout layout = {};
  const char* kv_cache_dtype = "auto";
};
void PrintTo(const BranchedFamily& one, std::ostream* out) {
  *out << one.golden << " " << one.layout.name() << " " << one.kv_cache_dtype;
}

std::vector<BranchedFamily> branched_families() {
  const Layout two{.tp = 2}, sharing{.tp = 2, .dcp = 2};
  return {{"llama"},
          {"llama", two},
          {"llama", {}, "fp8"},
          {"llama", {}, "int8"},
          {"gemma2"},
          {"gemma3"},
          {"gemma3", two},
          {"cohere2"},
          {"bloom"},
          {"gpt_oss"},
          {"deepseek_v3"},
          {"falcon", sharing},
          {"deepseek_v3", {}, "fp8"},
          {"deepseek_v32"},
          {"glm_moe_dsa"},
          {"hy_v4"}};
}

class BranchesOfFamilies : public ::testing::TestWithParam<BranchedFamily> {
 protected:
  static RunResult run(int num_branches) {
    const BranchedFamily& one = GetParam();
    const test::GoldenCase golden = test::golden_cases({one.golden}).front();
    const Variant variant{.steps_in_flight = 2, .batch = 4, .kv_cache_dtype = one.kv_cache_dtype};
    EngineConfig config = config_of(variant, golden);
    one.layout.apply(config);
    if (num_branches > 0) {
      SpeculativeConfig drafter;
      drafter.method = "draft_model";
      drafter.model = config.model;
      drafter.num_speculative_tokens = 3;
      drafter.length_policy = "fixed";
      drafter.num_branches = num_branches;
      config.speculative = {drafter};
    }
    std::vector<Request> requests;
    for (const nlohmann::json& entry : *golden.prompts) {
      Request& request = requests.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = 60;
      request.sampling.temperature = 0.8f;
      request.sampling.seed = 7;
      request.sampling.ignore_eos = true;
    }
    return run_alone(config, requests);
  }
};

TEST_P(BranchesOfFamilies, LeaveTheIdsAsTheyAre) {
  const std::string missing = missing_for(GetParam().layout);
  if (!missing.empty()) GTEST_SKIP() << missing;
  const RunResult tree = run(7);
  EXPECT_EQ(count_differences(run(0), tree, ::testing::PrintToString(GetParam())), 0);
  std::cout << "device=" << test_device_name() << " " << ::testing::PrintToString(GetParam())
            << ": drafted " << tree.stats.num_draft_tokens << ", accepted "
            << tree.stats.num_accepted_tokens << "\n";
  EXPECT_GT(tree.stats.num_accepted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(All, BranchesOfFamilies, ::testing::ValuesIn(branched_families()),
                         [](const auto& param) {
                           std::string name = ::testing::PrintToString(param.param);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace foretoken
