#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// DeepSeek V4: windows beside compressed entries, an indexer among these, four streams of hidden
// states, experts that tokens choose. However ranks share it and whoever drafts, its module among
// them, the ids are those of Hugging Face transformers.

namespace foretoken {
namespace {

constexpr size_t kCompressedRequests = 4;  // each prompt twice

class CompressedEntries : public testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    const std::string missing = missing_for(GetParam());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  static const test::GoldenCase& golden() {
    static const test::GoldenCase all = test::golden_cases({"deepseek_v4"}).front();
    return all;
  }
  static EngineConfig config_for(const Variant& variant) {
    EngineConfig config = config_of(variant, golden().folder);
    config.max_model_len = golden().max_model_len;
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    GetParam().apply(config);
    return config;
  }
  static std::vector<Request> requests(int max_tokens, bool sampled = false) {
    std::vector<Request> all;
    for (size_t i = 0; i < kCompressedRequests; ++i) {
      const nlohmann::json& entry = golden().prompts->at(i % golden().prompts->size());
      Request& request = all.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = max_tokens;
      request.sampling.temperature = sampled ? 0.7f : 0.0f;
      request.sampling.seed = 500 + static_cast<int64_t>(i);
      request.sampling.ignore_eos = true;
    }
    return all;
  }
  static RunResult run(const Variant& variant, const EngineConfig& config,
                       const std::vector<Request>& asked) {
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    RunResult result;
    for (int round = 0; made.ok() && round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, asked);
    }
    if (made.ok()) expect_all_free(*engine);
    return result;
  }
  static void expect_reference(const Variant& variant, int max_tokens) {
    const RunResult result = run(variant, config_for(variant), requests(max_tokens));
    const std::string what = variant.describe() + ", " + GetParam().name();
    ASSERT_EQ(result.ids.size(), kCompressedRequests) << what;
    for (size_t i = 0; i < result.ids.size(); ++i) {
      const auto& entry = golden().prompts->at(i % golden().prompts->size());
      auto wanted = entry.at("greedy").get<std::vector<int32_t>>();
      ASSERT_GE(wanted.size(), static_cast<size_t>(max_tokens));
      wanted.resize(static_cast<size_t>(max_tokens));
      EXPECT_EQ(result.ids[i], wanted) << what << ", prompt " << i;
    }
    if (variant.num_draft_tokens == 0) return;
    EXPECT_GT(result.stats.num_draft_tokens, result.stats.num_accepted_tokens) << what;
  }
};

TEST_P(CompressedEntries, IdsAreThoseOfTheReference) {
  const int ranks = GetParam().num_ranks();
  const int tokens = ranks > 2 ? 48 : ranks > 1 ? 128 : 256;
  expect_reference({.name = "alone"}, tokens);
  expect_reference({.num_draft_tokens = 3, .batch = 4}, tokens);
  expect_reference({.name = "module",
                    .num_draft_tokens = 3,
                    .drafter = "mtp",
                    .steps_in_flight = 2,
                    .batch = 4,
                    .max_batched_tokens = 23},
                   tokens);
  expect_reference({.name = "warm", .batch = 4, .prefix_caching = true, .warm = true}, 48);
}

TEST_P(CompressedEntries, ModulesLeaveSampledIdsAsTheyAre) {
  const std::vector<Request> asked = requests(64, true);
  const Variant alone{.name = "alone"};
  const RunResult base = run(alone, config_for(alone), asked);
  RunResult first;
  for (const int in_flight : {1, 2}) {
    const Variant module{.name = "module",
                         .num_draft_tokens = 2,
                         .drafter = "mtp",
                         .steps_in_flight = in_flight,
                         .batch = 4};
    const RunResult drafted = run(module, config_for(module), asked);
    EXPECT_EQ(count_differences(base, drafted, GetParam().name()), 0);
    EXPECT_GT(drafted.stats.num_draft_tokens, drafted.stats.num_accepted_tokens);
    if (in_flight == 1) first = drafted;
    EXPECT_EQ(drafted.stats.num_draft_tokens, first.stats.num_draft_tokens);
    EXPECT_EQ(drafted.stats.num_accepted_tokens, first.stats.num_accepted_tokens);
  }
}

// Entries as codes: another text, and the same whoever drafts, however prompts are cut, and behind
// prefix hits.
TEST_P(CompressedEntries, CodesOfEntriesKeepTextsWhoeverDrafts) {
  const std::vector<Request> asked = requests(64);
  const Variant alone{.name = "alone"};
  const RunResult plain = run(alone, config_for(alone), asked);
  for (const char* codes : {"fp8", "int8"}) {
    const auto run_codes = [&](const Variant& variant) {
      EngineConfig config = config_for(variant);
      config.kv_cache_dtype = codes;
      return run(variant, config, asked);
    };
    const RunResult base = run_codes(alone);
    ASSERT_EQ(base.ids.size(), kCompressedRequests);
    EXPECT_NE(base.ids, plain.ids) << "the cache is not of codes";
    for (const Variant& variant :
         {Variant{.num_draft_tokens = 3, .batch = 4},
          Variant{.name = "module",
                  .num_draft_tokens = 3,
                  .drafter = "mtp",
                  .steps_in_flight = 2,
                  .batch = 4,
                  .max_batched_tokens = 23},
          Variant{.name = "warm", .batch = 4, .prefix_caching = true, .warm = true}}) {
      EXPECT_EQ(count_differences(base, run_codes(variant), variant.describe()), 0) << codes;
    }
  }
}

// Experts of 32 columns are not cut any further: ranks take whole ones.
INSTANTIATE_TEST_SUITE_P(All, CompressedEntries,
                         testing::Values(Layout{}, Layout{.tp = 2, .ep = true}, Layout{.pp = 2},
                                         Layout{.pp = 3}, Layout{.dp = 2, .ep = true},
                                         Layout{.tp = 2, .pp = 2, .ep = true}, Layout{.dbo = true},
                                         Layout{.tp = 2, .ep = true, .dcp = 2},
                                         Layout{.tp = 2, .pp = 2, .ep = true, .dcp = 2}),
                         [](const auto& test) {
                           std::string name = test.param.name();
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Where experts are wide enough ranks divide their columns; random weights.
TEST(CompressedColumns, RanksThatDivideExpertsKeepTheIds) {
  const Layout two{.tp = 2};
  if (!missing_for(two).empty()) GTEST_SKIP() << missing_for(two);
  const test::GoldenCase golden = test::golden_cases({"deepseek_v4"}).front();
  std::vector<std::vector<int32_t>> ids;
  for (const Layout& layout : {Layout{}, two}) {
    EngineConfig config = config_of({.name = "columns"}, golden.folder);
    config.max_model_len = golden.max_model_len;
    config.hf_overrides = R"({"moe_intermediate_size": 64})";
    config.load_format = "dummy";
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    layout.apply(config);
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    ASSERT_TRUE(made.ok()) << made.message();
    Request request;
    request.prompt_token_ids = golden.prompts->at(1).at("ids").get<std::vector<int32_t>>();
    request.sampling.max_tokens = 48;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    ids.push_back(engine->generate({request})[0].token_ids);
  }
  EXPECT_EQ(ids[0], ids[1]);
}

}  // namespace
}  // namespace foretoken
