#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// Ranks that share the positions of attention layers, beside layers that keep states of sequences,
// of which each rank has its heads: ids are those of one rank, whoever drafts, in chunks,
// preempted, behind snapshots, and where blocks and states come back from host memory.

namespace foretoken {
namespace {

constexpr int kStateTokens = 32;

struct StatesCase {
  const char* model;
  Layout layout;
  const char* hf_overrides = "";  // random weights where there are some
};
void PrintTo(const StatesCase& one, std::ostream* out) { *out << one.model; }

class ContextStates : public testing::TestWithParam<StatesCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(GetParam().layout.num_ranks());
    if (!missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }
  static test::GoldenCase golden() { return test::golden_cases({GetParam().model}).front(); }
  static EngineConfig config(const Variant& variant, const Layout& layout) {
    const test::GoldenCase of = golden();
    EngineConfig made = config_of(variant, of.folder);
    made.max_model_len = of.max_model_len;
    made.hf_overrides = of.hf_overrides;
    if (*GetParam().hf_overrides != '\0') {
      made.hf_overrides = GetParam().hf_overrides;
      made.load_format = "dummy";
    }
    made.dtype = "float32";
    made.skip_tokenizer_init = true;
    layout.apply(made);
    return made;
  }
  static std::vector<Request> requests(int count) {
    const test::GoldenCase of = golden();
    std::vector<int32_t> text;
    for (const nlohmann::json& entry : *of.prompts) {
      for (const char* part : {"ids", "greedy"}) {
        const auto ids = entry.at(part).get<std::vector<int32_t>>();
        text.insert(text.end(), ids.begin(), ids.end());
      }
    }
    std::vector<Request> all;
    for (int i = 0; i < count; ++i) {
      Request& request = all.emplace_back();
      const int length = 41 + 17 * i % 90;
      const int begin = 29 * i % (static_cast<int>(text.size()) - length);
      request.prompt_token_ids.assign(text.begin() + begin, text.begin() + begin + length);
      request.sampling.max_tokens = kStateTokens;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.7f;
      request.sampling.seed = 70 + static_cast<uint64_t>(i);
      request.sampling.ignore_eos = true;
    }
    return all;
  }
  static RunResult run(const EngineConfig& config, const Variant& variant) {
    const auto engine = start_engine(config);
    if (engine == nullptr) return {};
    RunResult result;
    for (int round = 0; round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, requests(8));
    }
    expect_all_free(*engine);
    if (config.kv_offloading_size > 0) {
      EXPECT_GT(engine->stats().offload.num_hit_tokens, 0);
    }
    return result;
  }
  static RunResult run_shared(Variant variant, double host_gib = 0) {
    if (variant.drafter == "draft_model") variant.draft_model = golden().folder;
    EngineConfig shared = config(variant, GetParam().layout);
    shared.kv_offloading_size = host_gib;
    if (host_gib > 0) shared.max_state_snapshots = 2;
    return run(shared, variant);
  }
};

TEST_P(ContextStates, IdsAreThoseOfOneRank) {
  const Variant plain{.name = "plain"};
  const RunResult alone = run(config(plain, {}), plain);
  ASSERT_EQ(alone.ids.size(), 8u);
  const bool is_random = *GetParam().hf_overrides != '\0';
  const Variant drafting = is_random ? Variant{.num_draft_tokens = 3}
                                     : Variant{.num_draft_tokens = 3, .drafter = "draft_model"};
  const auto expect_same = [&](Variant variant, double host_gib = 0) {
    const RunResult shared = run_shared(variant, host_gib);
    EXPECT_EQ(count_differences(alone, shared, variant.describe()), 0);
    return shared;
  };
  expect_same(plain);
  Variant variant = drafting;
  variant.steps_in_flight = 2;
  variant.batch = 8;
  const RunResult drafted = expect_same(variant);
  EXPECT_GT(drafted.stats.num_draft_tokens, 0);
  EXPECT_TRUE(is_random || drafted.stats.num_accepted_tokens > 0);
  variant.max_batched_tokens = 23;
  variant.num_blocks = 5 * 2 / GetParam().layout.dcp;
  variant.prefix_caching = true;
  EXPECT_GT(expect_same(variant).stats.num_preemptions, 0);
  expect_same(variant, 0.1);
  Variant warm = drafting;
  warm.prefix_caching = warm.warm = true;
  EXPECT_GT(expect_same(warm).stats.num_cached_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, ContextStates,
    testing::Values(StatesCase{"qwen3_next", {.tp = 4, .ep = true, .dcp = 2}},
                    StatesCase{"qwen3_5", {.tp = 4, .dcp = 2}},
                    StatesCase{"lfm2", {.tp = 4, .dcp = 2}},
                    StatesCase{"olmo_hybrid", {.tp = 4, .dcp = 2}},
                    StatesCase{"kimi_linear", {.tp = 2, .ep = true, .dcp = 2}},
                    StatesCase{"nemotron_h", {.tp = 2, .dcp = 2}, R"({"num_key_value_heads": 1})"},
                    StatesCase{"bamba", {.tp = 2, .dcp = 2}, R"({"num_key_value_heads": 1})"}),
    [](const auto& test) { return std::string(test.param.model); });

}  // namespace
}  // namespace foretoken
