#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "conformance/layouts.h"
#include "draft/registry.h"
#include "support/folders.h"

// Mixtures of experts, with keys and values apart and with latent attention: every drafter leaves
// the ids as they are without, in whatever company rows are routed, and counts do not depend on the
// steps in flight. Which experts a row finds itself at with others changes from step to step.

namespace foretoken {
namespace {

constexpr int kMixtureTokens = 48;
constexpr int kMixtureDrafts = 4;
constexpr int kFewMixtureBlocks = 14;  // hardly more than one sequence at full length

bool runs_all_mixtures() { return num_test_prompts(200) == 200; }

struct MixtureCase {
  std::string architecture;
  std::string kind;  // of test::DialledSet
  bool sampled = false;

  std::string name() const {
    return architecture.substr(0, architecture.find("For")) + "_" + kind +
           (sampled ? "_Sampled" : "_Greedy");
  }
};
void PrintTo(const MixtureCase& one, std::ostream* out) { *out << one.name(); }

// Of a short run: every way to compute drafts, but not with every mixture nor with all files.
bool is_of_short_run(const MixtureCase& one) {
  if (one.architecture == "GptOssForCausalLM") return one.kind == "draft_model" && !one.sampled;
  if (one.architecture != "DeepseekV3ForCausalLM") return one.kind == "mtp" && !one.sampled;
  if (one.sampled) return one.kind == "mtp";
  return one.kind != "eagle" && one.kind != "draft_model_shifted" && one.kind != "mtp_own";
}

// Every kind on the mixture that has latents too, but those that attend to keys and values of the
// target; the kinds whose layers are the target's own also on the others.
std::vector<MixtureCase> mixture_cases() {
  std::vector<MixtureCase> all;
  for (const bool sampled : {false, true}) {
    for (const std::string& kind : test::DialledSet::kinds()) {
      if (test::DialledSet::traits(kind).reads_target_kv) continue;
      all.push_back({"DeepseekV3ForCausalLM", kind, sampled});
    }
    for (const char* kind : {"draft_model", "mtp", "mtp_chained"}) {
      all.push_back({"Glm4MoeForCausalLM", kind, sampled});
    }
    // Sinks, biases, and every other layer with a window.
    for (const char* kind : {"draft_model", "ngram", "eagle3"}) {
      all.push_back({"GptOssForCausalLM", kind, sampled});
    }
  }
  for (const char* architecture : {"MixtralForCausalLM", "Qwen3MoeForCausalLM"}) {
    all.push_back({architecture, "draft_model", false});
  }
  return all;
}

// Where they are sampled, hot enough that the dialled successor is often not what comes.
std::vector<Request> mixture_requests(const MixtureCase& one) {
  auto requests = dialled_requests(test::DialledSet::of(one.architecture), one.kind,
                                   num_test_prompts(200), kMixtureTokens);
  for (size_t i = 0; one.sampled && i < requests.size(); ++i) {
    requests[i].sampling.temperature = 4;
    requests[i].sampling.top_k = 40;
    requests[i].sampling.seed = 500 + i;
  }
  return requests;
}

class MixtureIdentity : public testing::TestWithParam<MixtureCase> {
 protected:
  void SetUp() override {
    if (!runs_all_mixtures() && !is_of_short_run(GetParam())) GTEST_SKIP() << "a short run";
    requests_ = mixture_requests(GetParam());
  }
  const test::DialledSet& set() const { return test::DialledSet::of(GetParam().architecture); }
  static bool learns() {
    const Result<const DrafterEntry*> entry = find_drafter(GetParam().kind);
    return entry.ok() && entry.value()->traits.learns;
  }
  // Of greedy texts; less where the drafter's later drafts look at no draft before.
  double least_acceptance() const {
    const double known = set().acceptance(GetParam().kind, kMixtureDrafts);
    return known > 0 ? std::min(0.3, 0.7 * known) : 0.3;
  }

  RunResult run(Variant variant) const {
    variant.drafter = GetParam().kind;
    return run_dialled(variant, set(), requests_);
  }
  RunResult drafting(Variant variant) const {
    variant.num_draft_tokens = kMixtureDrafts;
    return run(variant);
  }
  // Alone and without drafts.
  const RunResult& plain() {
    if (plain_.ids.empty()) plain_ = run({.name = "plain"});
    return plain_;
  }
  RunResult expect_same(const Variant& variant) {
    const RunResult other = drafting(variant);
    const std::string what = GetParam().name() + ", " + variant.describe();
    const int differing = count_differences(plain(), other, what);
    std::cout << "device=" << test_device_name() << " " << what << ": " << differing << " of "
              << other.ids.size() << " prompts differ, drafted " << other.stats.num_draft_tokens
              << ", accepted " << other.stats.num_accepted_tokens << ", preemptions "
              << other.stats.num_preemptions << ", cached tokens " << other.stats.num_cached_tokens
              << "\n";
    EXPECT_EQ(differing, 0);
    EXPECT_GT(other.stats.num_accepted_tokens, 0) << variant.name;
    // One that learns may be right throughout a second run.
    if (!learns()) {
      EXPECT_GT(other.stats.num_draft_tokens, other.stats.num_accepted_tokens) << variant.name;
    }
    return other;
  }

 private:
  std::vector<Request> requests_;
  RunResult plain_;
};

TEST_P(MixtureIdentity, IdsAndCountsAreTheSameForAnyStepsInFlightAndAlone) {
  const RunResult base = expect_same({.name = "alone"});
  const double acceptance = static_cast<double>(base.stats.num_accepted_tokens) /
                            static_cast<double>(base.stats.num_draft_tokens);
  // One that learns knows the whole cycle after so many texts.
  EXPECT_TRUE(acceptance < 0.95 || learns()) << acceptance;
  EXPECT_GT(acceptance, GetParam().sampled ? 0.0 : least_acceptance());
  for (const int in_flight : {1, 2, 3}) {
    const RunResult run =
        expect_same({.name = "batched", .steps_in_flight = in_flight, .batch = 32});
    // One that learns drafts by what came before, and these arrive as they may.
    if (learns()) continue;
    EXPECT_EQ(run.stats.num_draft_tokens, base.stats.num_draft_tokens) << in_flight;
    EXPECT_EQ(run.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << in_flight;
  }
}

TEST_P(MixtureIdentity, ChunkedPreemptedAndBehindPrefixHits) {
  expect_same({.name = "chunked",
               .steps_in_flight = 2,
               .batch = 32,
               .max_batched_tokens = 23,
               .eager = true});
  const RunResult preempted = expect_same({.name = "preempted",
                                           .steps_in_flight = 2,
                                           .batch = 32,
                                           .num_blocks = kFewMixtureBlocks,
                                           .prefix_caching = true});
  EXPECT_GT(preempted.stats.num_preemptions, 0);
  const RunResult hits = expect_same(
      {.name = "hits", .steps_in_flight = 2, .batch = 32, .prefix_caching = true, .warm = true});
  // Windowed blocks of many more prompts do not fit: each is gone when its turn comes again.
  constexpr int kPromptsThatFit = 24;
  if (num_test_prompts(200) <= kPromptsThatFit) {
    EXPECT_GT(hits.stats.num_cached_tokens, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MixtureIdentity, testing::ValuesIn(mixture_cases()),
                         [](const auto& test) { return test.param.name(); });

// The bundled one, which was trained, with the module of its own files and with looked-up drafts.
class BundledMixture : public testing::TestWithParam<bool> {
 protected:
  static std::string folder() {
    return std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
  }
  void SetUp() override {
    if (!std::filesystem::exists(folder() + "/config.json")) GTEST_SKIP() << "no " << folder();
  }
  static RunResult run(Variant variant, const std::string& method, int num_draft_tokens) {
    EngineConfig config = config_of(variant, folder());
    if (num_draft_tokens > 0) {
      SpeculativeConfig& drafter = config.speculative.emplace_back();
      drafter.method = method;
      drafter.num_speculative_tokens = num_draft_tokens;
      drafter.length_policy = variant.policy;
    }
    return run_config(config, variant, bench_prompts(num_test_prompts(200)), GetParam(), 40);
  }
};

TEST_P(BundledMixture, IdsAndCountsAreTheSame) {
  const RunResult plain = run({.batch = 8}, "", 0);
  for (const auto& [method, num_draft_tokens] :
       std::vector<std::pair<std::string, int>>{{"mtp", 1}, {"mtp", 3}, {"ngram", 4}}) {
    RunResult base;
    for (const int in_flight : {1, 2, 3}) {
      const std::string what = method + ", drafts " + std::to_string(num_draft_tokens) +
                               ", in flight " + std::to_string(in_flight);
      const RunResult other = run({.name = "bundled", .steps_in_flight = in_flight, .batch = 8},
                                  method, num_draft_tokens);
      EXPECT_EQ(count_differences(plain, other, what), 0);
      // Sampled words hardly stand behind the same ones again.
      const bool may_lack_drafts = GetParam() && method == "ngram";
      EXPECT_TRUE(other.stats.num_draft_tokens > 0 || may_lack_drafts) << what;
      EXPECT_TRUE(other.stats.num_accepted_tokens > 0 || may_lack_drafts) << what;
      if (in_flight == 1) base = other;
      EXPECT_EQ(other.stats.num_draft_tokens, base.stats.num_draft_tokens) << what;
      EXPECT_EQ(other.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << what;
    }
  }
  const RunResult adaptive = run({.name = "adaptive",
                                  .policy = "adaptive",
                                  .steps_in_flight = 2,
                                  .batch = 8,
                                  .max_batched_tokens = 40},
                                 "mtp", 3);
  EXPECT_EQ(count_differences(plain, adaptive, "adaptive and chunked"), 0);
}

INSTANTIATE_TEST_SUITE_P(All, BundledMixture, testing::Bool(),
                         [](const auto& test) { return test.param ? "Sampled" : "Greedy"; });

RunResult run_mixture_layout(const test::DialledSet& set, const Layout& layout,
                             const std::string& kind, int steps_in_flight,
                             const std::vector<Request>& requests) {
  EngineConfig config = config_of({.num_draft_tokens = kind.empty() ? 0 : 3,
                                   .drafter = kind,
                                   .steps_in_flight = steps_in_flight,
                                   .max_batched_tokens = 64},
                                  set);
  layout.apply(config);
  // The dialled head of EAGLE-3 has two heads.
  if (layout.tp > 2 && kind == "eagle3") config.speculative[0].draft_tensor_parallel_size = 1;
  return run_alone(config, requests);
}

// Ranks divide the columns of every expert, or the experts, or the layers; drafters are mixtures
// too.
class MixtureLayouts : public testing::TestWithParam<std::tuple<Layout, std::string>> {
 protected:
  void SetUp() override {
    const Layout& layout = std::get<0>(GetParam());
    const std::string missing = missing_for(layout);
    if (!missing.empty()) GTEST_SKIP() << missing;
    const bool is_first = set().shape().architecture == "DeepseekV3ForCausalLM";
    if (!runs_all_mixtures() && !is_first && layout.ep &&
        (layout.dp > 1 || layout.num_ranks() > 2)) {
      GTEST_SKIP() << "a short run";
    }
  }
  const test::DialledSet& set() const { return test::DialledSet::of(std::get<1>(GetParam())); }
};

// As dialled for one rank, and as many drafts, with one and with two steps in flight.
void expect_counts_of_one_rank(const test::DialledSet& set, const Layout& layout,
                               const std::vector<const char*>& kinds) {
  for (const char* kind : kinds) {
    const std::vector<Request> requests = dialled_requests(set, kind, num_test_prompts(6), 24);
    const RunResult base = run_mixture_layout(set, {}, kind, 1, requests);
    for (const int in_flight : {1, 2}) {
      const std::string what = kind + std::string(", in flight ") + std::to_string(in_flight);
      const RunResult several = run_mixture_layout(set, layout, kind, in_flight, requests);
      EXPECT_EQ(count_differences(base, several, what), 0);
      EXPECT_EQ(several.stats.num_draft_tokens, base.stats.num_draft_tokens) << what;
      EXPECT_EQ(several.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << what;
    }
    EXPECT_EQ(base.stats.num_accepted_tokens > 0, *kind != '\0') << kind;
  }
}

TEST_P(MixtureLayouts, CountsAreThoseOfOneRank) {
  std::vector<const char*> kinds = {"", "ngram", "draft_model", "eagle3", "mtp", "mtp_chained"};
  const std::string& architecture = set().shape().architecture;
  if (architecture == "GptOssForCausalLM") {
    kinds = {"", "ngram", "draft_model", "eagle3"};
    if (!runs_all_mixtures()) kinds = {"", "eagle3"};
  } else if (!runs_all_mixtures() && architecture != "DeepseekV3ForCausalLM") {
    kinds = {"", "mtp"};
  }
  const Layout& layout = std::get<0>(GetParam());
  if (!runs_all_mixtures() && layout.ep && layout.num_ranks() > 2) kinds = {"", kinds.back()};
  expect_counts_of_one_rank(set(), layout, kinds);
}

// What the start of an engine ends with.
std::string refusal_of(const EngineConfig& config) {
  std::unique_ptr<Engine> engine;
  return make_engine(config, &engine).message();
}

// Ranks with different numbers of experts, of which one could not cut the columns of each.
TEST(ExpertParallel, OddAndNarrowExpertsAreDealtOut) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  const test::DialledSet set({.architecture = "Glm4MoeForCausalLM",
                              .num_experts = 7,
                              .experts_per_token = 2,
                              .expert_inner = 32});
  EngineConfig cut = config_of({}, set);
  Layout{.tp = 2}.apply(cut);
  EXPECT_NE(refusal_of(cut).find("32 inner columns of each expert"), std::string::npos);
  expect_counts_of_one_rank(set, {.tp = 2, .ep = true}, {"", "mtp"});
}

TEST(ExpertParallel, ADenseModelIsRefused) {
  EngineConfig dense = config_of({}, test::DialledSet::of());
  Layout{.tp = 2, .ep = true}.apply(dense);
  EXPECT_NE(refusal_of(dense).find("no mixture of experts"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, MixtureLayouts,
    testing::Combine(
        testing::Values(Layout{.tp = 2}, Layout{.pp = 2}, Layout{.tp = 2, .ep = true},
                        Layout{.tp = 4, .ep = true}, Layout{.dp = 2, .ep = true},
                        Layout{.dp = 4, .ep = true}, Layout{.tp = 2, .dp = 2, .ep = true},
                        Layout{.tp = 2, .pp = 2, .ep = true}, Layout{.pp = 2, .dp = 2, .ep = true},
                        Layout{.tp = 2, .pp = 2, .dp = 2, .ep = true}),
        testing::Values("Glm4MoeForCausalLM", "DeepseekV3ForCausalLM", "GptOssForCausalLM")),
    [](const auto& test) {
      const std::string& architecture = std::get<1>(test.param);
      return architecture.substr(0, architecture.find("For")) + "_" +
             std::get<0>(test.param).name();
    });

}  // namespace
}  // namespace foretoken
