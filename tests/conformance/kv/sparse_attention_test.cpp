#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// Models whose indexers choose the positions that rows attend to, 64 of up to 166, or blocks of
// them, 4 of up to 21: the ids are those of Hugging Face transformers, and keys of indexers go with
// blocks wherever these go.

namespace foretoken {
namespace {

constexpr int kSparseDrafts = 3;
constexpr size_t kSparseRequests = 4;  // each prompt twice
constexpr int kSparseTokens = 96;      // of a text, behind up to 70; its reference has more

class SparseAttention : public testing::TestWithParam<test::GoldenCase> {
 protected:
  static EngineConfig config_for(const Variant& variant) {
    EngineConfig config = config_of(variant, GetParam());
    return config;
  }
  static std::vector<Request> requests(bool sampled = false) {
    std::vector<Request> all;
    for (size_t i = 0; i < kSparseRequests; ++i) {
      const nlohmann::json& entry = GetParam().prompts->at(i % GetParam().prompts->size());
      Request& request = all.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = kSparseTokens;
      request.sampling.temperature = sampled ? 0.7f : 0.0f;
      request.sampling.seed = 500 + static_cast<int64_t>(i);
      request.sampling.ignore_eos = true;
    }
    return all;
  }
  static RunResult run(const Variant& variant, const EngineConfig& config, bool sampled = false) {
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    RunResult result;
    for (int round = 0; made.ok() && round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, requests(sampled));
    }
    if (made.ok()) expect_all_free(*engine);
    return result;
  }
  static void expect_reference(const RunResult& result, const std::string& what) {
    const auto& prompts = *GetParam().prompts;
    ASSERT_EQ(result.ids.size(), kSparseRequests) << what;
    for (size_t i = 0; i < result.ids.size(); ++i) {
      auto wanted = prompts.at(i % prompts.size()).at("greedy").get<std::vector<int32_t>>();
      ASSERT_GE(wanted.size(), size_t{kSparseTokens});
      wanted.resize(kSparseTokens);
      EXPECT_EQ(result.ids[i], wanted) << what << ", prompt " << i;
    }
  }
  static bool chooses_blocks() { return GetParam().name.starts_with("minimax_m3"); }
  static bool has_modules() { return !chooses_blocks(); }
  // With the modules in the files, or the model as its own draft model where there are none.
  static Variant drafting(Variant variant) {
    if (variant.drafter == "ngram") variant.drafter = has_modules() ? "mtp" : "draft_model";
    if (variant.drafter == "draft_model") variant.draft_model = GetParam().folder;
    variant.num_draft_tokens = kSparseDrafts;
    return variant;
  }
};

TEST_P(SparseAttention, IdsAreThoseOfTheReference) {
  const Variant modules = drafting({.name = "modules", .steps_in_flight = 2, .batch = 4});
  const RunResult drafted = run(modules, config_for(modules));
  expect_reference(drafted, modules.name);
  EXPECT_GT(drafted.stats.num_draft_tokens, 0);
  const Variant cut = drafting({.name = "cut",
                                .steps_in_flight = 2,
                                .batch = 4,
                                .max_batched_tokens = 23,
                                .num_blocks = 23});
  const RunResult preempted = run(cut, config_for(cut));
  expect_reference(preempted, cut.name);
  EXPECT_GT(preempted.stats.num_preemptions, 0);
  const Variant warm = {.name = "warm", .batch = 4, .prefix_caching = true, .warm = true};
  EngineConfig offloading = config_for(warm);
  offloading.num_gpu_blocks_override = 23;
  offloading.kv_offloading_size = 0.01;
  const RunResult hits = run(warm, offloading);
  expect_reference(hits, warm.name);
  EXPECT_GT(hits.stats.num_cached_tokens, 0);
}

TEST_P(SparseAttention, Fp8EntriesKeepTheIds) {
  const Variant plain{.name = "plain", .kv_cache_dtype = "fp8"};
  const RunResult base = run(plain, config_for(plain), true);
  const Variant modules = drafting({.name = "modules",
                                    .steps_in_flight = 2,
                                    .batch = 4,
                                    .max_batched_tokens = 37,
                                    .kv_cache_dtype = "fp8"});
  EXPECT_EQ(count_differences(base, run(modules, config_for(modules), true), modules.name), 0);
}

TEST_P(SparseAttention, OtherDraftersKeepTheIds) {
  const Variant base{.steps_in_flight = 2, .batch = 4, .max_batched_tokens = 37};
  const auto with = [&](const char* method) {
    Variant variant = base;
    variant.name = variant.drafter = method;
    if (variant.drafter == "draft_model") variant.draft_model = GetParam().folder;
    variant.num_draft_tokens = kSparseDrafts;
    return variant;
  };
  EngineConfig list = config_for(base);
  for (const char* method : {"ngram", "suffix", "draft_model"}) {
    const Variant variant = with(method);
    const EngineConfig config = config_for(variant);
    expect_reference(run(variant, config), variant.name);
    if (variant.drafter != "suffix") list.speculative.push_back(config.speculative.front());
  }
  const RunResult listed = run(base, list);
  expect_reference(listed, "list");
  EXPECT_GT(listed.stats.num_draft_tokens, 0);
}

// Ranks have keys of indexers of all positions, and stages what the layer before theirs has chosen.
TEST_P(SparseAttention, RanksKeepTheIds) {
  // Experts of 32 columns are not cut any further: ranks take whole ones.
  for (const Layout& layout :
       {Layout{.tp = 2, .ep = true}, Layout{.pp = 2}, Layout{.tp = 2, .ep = true, .dcp = 2}}) {
    if (!missing_for(layout).empty()) continue;
    // Its two ranks have a head of keys each, and none in common.
    if (layout.dcp > 1 && chooses_blocks()) continue;
    const Variant variant = drafting({.name = layout.name(), .batch = 4});
    EngineConfig config = config_for(variant);
    layout.apply(config);
    expect_reference(run(variant, config), variant.name);
  }
}

// Ranks that share the positions of one head of keys, of random weights.
TEST(ChosenBlocks, RanksThatShareContextKeepTheIds) {
  const Layout shared{.tp = 2, .ep = true, .dcp = 2};
  if (!missing_for(shared).empty()) GTEST_SKIP() << missing_for(shared);
  const test::GoldenCase golden = test::golden_cases({"minimax_m3"}).front();
  const auto run = [&](const Variant& variant, const Layout& layout) {
    EngineConfig config = config_of(variant, golden.folder);
    config.max_model_len = golden.max_model_len;
    config.hf_overrides =
        R"({"num_key_value_heads": 1, "sparse_attention_config": {
            "use_sparse_attention": true, "sparse_attention_freq": [0, 1], "sparse_block_size": 8,
            "sparse_index_dim": 16, "sparse_num_index_heads": 1, "sparse_topk_blocks": 4}})";
    config.load_format = "dummy";
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    layout.apply(config);
    std::vector<Request> asked;
    for (const nlohmann::json& entry : *golden.prompts) {
      Request& request = asked.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = kSparseTokens;
      request.sampling.temperature = 0.7f;
      request.sampling.seed = 500;
      request.sampling.ignore_eos = true;
    }
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    RunResult result;
    for (int round = 0; made.ok() && round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, asked);
    }
    return result;
  };
  const RunResult base = run({.name = "alone"}, {});
  ASSERT_FALSE(base.ids.empty());
  for (const Variant& variant :
       {Variant{.name = "shared"}, Variant{.name = "cut", .batch = 4, .max_batched_tokens = 23},
        Variant{.name = "warm", .batch = 4, .prefix_caching = true, .warm = true},
        Variant{.num_draft_tokens = kSparseDrafts, .steps_in_flight = 2, .batch = 4}}) {
    EXPECT_EQ(count_differences(base, run(variant, shared), variant.describe()), 0);
  }
}

// Masks and scores of one's own know the positions of what was chosen, with drafts, in pieces of a
// prompt and on ranks, and where entries are codes.
TEST(ChosenBlocks, ExpressionsKeepTheIds) {
  const test::GoldenCase golden = test::golden_cases({"minimax_m3"}).front();
  const auto run = [&](const char* backend, const char* kv, Variant variant, const Layout& layout) {
    variant.kv_cache_dtype = kv;
    variant.draft_model = golden.folder;
    variant.drafter = "draft_model";
    EngineConfig config = config_of(variant, golden);
    config.attention_backend = backend;
    layout.apply(config);
    std::vector<Request> asked;
    for (const nlohmann::json& entry : *golden.prompts) {
      Request& request = asked.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = kSparseTokens;
      request.sampling.ignore_eos = true;
    }
    const auto engine = start_engine(config);
    return engine == nullptr ? RunResult{} : run_requests(*engine, variant, asked);
  };
  constexpr const char* kOwn =
      "flex(kv <= q and (q - kv < 60 or kv % (2 + h % 2) == 0); score - 0.01 * (h + 1) * (q - kv))";
  const Variant alone{.name = "alone"};
  const Variant drafted{.name = "drafted",
                        .num_draft_tokens = kSparseDrafts,
                        .steps_in_flight = 2,
                        .batch = 4,
                        .max_batched_tokens = 37};
  for (const char* kv : {"auto", "fp8", "int8"}) {
    const RunResult plain = run(kOwn, kv, alone, {});
    ASSERT_FALSE(plain.ids.empty()) << kv;
    const RunResult with_drafts = run(kOwn, kv, drafted, {});
    EXPECT_EQ(count_differences(plain, with_drafts, kv), 0);
    EXPECT_GT(with_drafts.stats.num_accepted_tokens, 0);
    EXPECT_NE(run("portable", kv, alone, {}).ids, plain.ids) << "they change nothing";
  }
  const Layout ranks{.tp = 2, .ep = true};
  if (!missing_for(ranks).empty()) return;
  EXPECT_EQ(
      count_differences(run(kOwn, "auto", alone, {}), run(kOwn, "auto", drafted, ranks), "TP2"), 0);
}

INSTANTIATE_TEST_SUITE_P(All, SparseAttention,
                         testing::ValuesIn(test::golden_cases({"deepseek_v32", "glm_moe_dsa",
                                                               "hy_v4", "minimax_m3"})),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken
