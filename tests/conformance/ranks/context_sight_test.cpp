#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// Ranks that share the positions of sequences, where what a row makes of a key depends on how far
// it lies back or on more than its position: ids are those of one rank, with drafts and without, in
// chunks and preempted.

namespace foretoken {
namespace {

constexpr int kSightTokens = 32;

struct SightCase {
  const char* name;
  const char* model;
  Layout layout;
  const char* hf_overrides = "{}";
  const char* attention = "auto";
  const char* kv_cache_dtype = "auto";

  // Prompts see themselves, so that each is computed in one step and none has hits.
  bool has_whole_prompts() const {
    return std::string(attention).find("prompt") != std::string::npos;
  }
};
void PrintTo(const SightCase& one, std::ostream* out) { *out << one.name; }

class ContextSight : public testing::TestWithParam<SightCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(GetParam().layout.num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  static test::GoldenCase golden() { return test::golden_cases({GetParam().model}).front(); }
  static EngineConfig config(Variant variant, const Layout& layout) {
    const SightCase& one = GetParam();
    const test::GoldenCase of = golden();
    variant.kv_cache_dtype = one.kv_cache_dtype;
    if (variant.drafter == "draft_model") variant.draft_model = of.folder;
    EngineConfig made = config_of(variant, of.folder);
    made.max_model_len = of.max_model_len;
    made.hf_overrides = one.hf_overrides;
    made.attention_backend = one.attention;
    made.dtype = "float32";
    made.skip_tokenizer_init = true;
    layout.apply(made);
    return made;
  }
  static std::vector<Request> requests() {
    std::vector<int32_t> text;
    const test::GoldenCase of = golden();
    for (const nlohmann::json& entry : *of.prompts) {
      for (const char* part : {"ids", "greedy"}) {
        const auto ids = entry.at(part).get<std::vector<int32_t>>();
        text.insert(text.end(), ids.begin(), ids.end());
      }
    }
    std::vector<Request> all;
    for (int i = 0; i < 8; ++i) {
      Request& request = all.emplace_back();
      request.prompt_token_ids.assign(text.begin() + 31 * i, text.begin() + 31 * i + 41 + 11 * i);
      request.sampling.max_tokens = kSightTokens;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.7f;
      request.sampling.seed = 70 + static_cast<uint64_t>(i);
      request.sampling.ignore_eos = true;
    }
    return all;
  }
  static RunResult run(const Variant& variant, const Layout& layout) {
    const auto engine = start_engine(config(variant, layout));
    if (engine == nullptr) return {};
    RunResult result;
    for (int round = 0; round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, requests());
    }
    expect_all_free(*engine);
    return result;
  }
};

TEST_P(ContextSight, IdsAreThoseOfOneRank) {
  const Variant plain{.name = "plain"};
  const RunResult alone = run(plain, {});
  ASSERT_EQ(alone.ids.size(), 8u);
  const auto expect_same = [&](const Variant& variant) {
    const RunResult shared = run(variant, GetParam().layout);
    EXPECT_EQ(count_differences(alone, shared, variant.describe()), 0);
    return shared;
  };
  expect_same(plain);
  Variant variant{.num_draft_tokens = 3, .drafter = "draft_model", .steps_in_flight = 2};
  variant.batch = 8;
  EXPECT_GT(expect_same(variant).stats.num_draft_tokens, 0);
  if (!GetParam().has_whole_prompts()) {
    variant.max_batched_tokens = 23;
    variant.prefix_caching = true;
  }
  variant.num_blocks = 12 / GetParam().layout.dcp;
  EXPECT_GT(expect_same(variant).stats.num_preemptions, 0);
  if (GetParam().has_whole_prompts()) return;
  Variant warm{.num_draft_tokens = 3};
  warm.prefix_caching = warm.warm = true;
  EXPECT_GT(expect_same(warm).stats.num_cached_tokens, 0);
}

constexpr const char* kSlopes = R"({"alibi": true})";
constexpr const char* kFlex =
    "flex(kv <= q and q - kv < (30 if h % 2 == 0 else 75) and kv % 7 != 3; score - 0.02 * (q - "
    "kv))";
constexpr const char* kPrompts = "flex(kv <= q or prompt and kv - q < 40; )";

// One head of keys and values, which all ranks have.
INSTANTIATE_TEST_SUITE_P(
    All, ContextSight,
    testing::Values(SightCase{"Slopes_TP2", "falcon", {.tp = 2, .dcp = 2}, kSlopes},
                    SightCase{"Slopes_TP4", "falcon", {.tp = 4, .dcp = 4}, kSlopes},
                    SightCase{"Slopes_TP4DCP2", "falcon", {.tp = 4, .dcp = 2}, kSlopes},
                    SightCase{
                        "SlopesInt8_TP2", "falcon", {.tp = 2, .dcp = 2}, kSlopes, "auto", "int8"},
                    SightCase{"Flex_TP2", "falcon", {.tp = 2, .dcp = 2}, "{}", kFlex},
                    SightCase{"Flex_TP4", "falcon", {.tp = 4, .dcp = 4}, "{}", kFlex, "fp8"},
                    SightCase{"Flex_TP4DCP2", "falcon", {.tp = 4, .dcp = 2}, "{}", kFlex},
                    SightCase{"FlexSlopes_TP2", "falcon", {.tp = 2, .dcp = 2}, kSlopes, kFlex},
                    SightCase{"Prompts_TP2", "falcon", {.tp = 2, .dcp = 2}, "{}", kPrompts},
                    SightCase{"Prompts_TP4", "falcon", {.tp = 4, .dcp = 4}, "{}", kPrompts}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken
