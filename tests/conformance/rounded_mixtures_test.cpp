#include <gtest/gtest.h>

#include <iostream>
#include <ostream>

#include "conformance/layouts.h"

// With --activation-scheme dynamic, the experts of mixtures take rounded rows: ids depend on
// nothing that runs beside a request, with every drafter and on ranks.

namespace foretoken {
namespace {

constexpr int kRoundedMixtureTokens = 24;

struct RoundedMixture {
  std::string architecture;
  std::string kind;  // of test::DialledSet
  Layout layout = {};

  std::string name() const {
    const std::string family = architecture.substr(0, architecture.find("For"));
    return family + "_" + kind + (layout.num_ranks() > 1 ? "_" + layout.name() : "");
  }
};
void PrintTo(const RoundedMixture& one, std::ostream* out) { *out << one.name(); }

// Every drafter on the mixture with latents and a shared expert, other mixtures and ranks with
// some.
std::vector<RoundedMixture> rounded_mixtures() {
  std::vector<RoundedMixture> all;
  for (const std::string& kind : test::DialledSet::kinds()) {
    // Latents are no keys and values.
    if (test::DialledSet::traits(kind).reads_target_kv) continue;
    all.push_back({"DeepseekV3ForCausalLM", kind});
  }
  for (const char* other :
       {"Glm4MoeForCausalLM", "GptOssForCausalLM", "MixtralForCausalLM", "Qwen3MoeForCausalLM"}) {
    all.push_back({other, "draft_model"});
  }
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.tp = 2, .ep = true},
                               Layout{.dp = 2, .ep = true}, Layout{.tp = 2, .dbo = true}}) {
    all.push_back({"DeepseekV3ForCausalLM", "mtp", layout});
  }
  return all;
}

class RoundedMixtures : public testing::TestWithParam<RoundedMixture> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_for(GetParam().layout); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }

  RunResult run(Variant variant) const {
    const test::DialledSet& set = test::DialledSet::of(GetParam().architecture);
    variant.drafter = GetParam().kind;
    EngineConfig config = config_of(variant, set);
    config.dtype = "bfloat16";
    config.quantization = "fp8";
    config.activation_scheme = "dynamic";
    GetParam().layout.apply(config);
    const auto engine = start_engine(config);
    if (engine == nullptr) return {};
    return run_requests(
        *engine, variant,
        dialled_requests(set, GetParam().kind, num_test_prompts(4), kRoundedMixtureTokens));
  }
};

TEST_P(RoundedMixtures, IdsAreTheSame) {
  const RunResult plain = run({.name = "plain"});
  const RunResult alone = run({.name = "alone", .num_draft_tokens = 4});
  EXPECT_EQ(count_differences(plain, alone, GetParam().name() + ", alone"), 0);
  std::cout << GetParam().name() << ": drafted " << alone.stats.num_draft_tokens << ", accepted "
            << alone.stats.num_accepted_tokens << "\n";
  EXPECT_GT(alone.stats.num_accepted_tokens, 0);
  const RunResult chunked = run({.name = "chunked",
                                 .num_draft_tokens = 4,
                                 .steps_in_flight = 3,
                                 .batch = 32,
                                 .max_batched_tokens = 37});
  EXPECT_EQ(count_differences(plain, chunked, GetParam().name() + ", chunked"), 0);
}

INSTANTIATE_TEST_SUITE_P(All, RoundedMixtures, testing::ValuesIn(rounded_mixtures()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace foretoken
