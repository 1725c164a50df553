#include <gtest/gtest.h>

#include <utility>

#include "apps/command_run.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Flags = std::vector<std::string>;

// Ends before a model is loaded unless the configuration is right.
CommandResult start(const Flags& flags) {
  Flags all = {"generate",    "--model", bundled_model().string(), "--prompt", "Once",
               "--log-level", "error",   "--max-tokens",           "4"};
  all.insert(all.end(), flags.begin(), flags.end());
  return run_command(all);
}

void expect_config_refused(const Flags& flags, const std::string& part) {
  const CommandResult result = start(flags);
  EXPECT_EQ(result.exit_code, 1) << flags.back();
  ASSERT_EQ(result.errors().size(), 1u) << flags.back() << result.err;
  EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
  EXPECT_TRUE(result.out.empty()) << result.out;
}

struct Case {
  const char* config;
  const char* part;
};

void expect_config_refused(std::initializer_list<Case> cases) {
  for (const auto& [config, part] : cases) expect_config_refused({"-sc", config}, part);
}

// An n-gram configuration with one more field.
std::string ngram_with(const std::string& field) {
  return R"({"method": "ngram", "num_speculative_tokens": 3, )" + field + "}";
}

TEST(SpeculativeConfig, ListsOfOneStep) {
  expect_config_refused(
      {{R"({"method": [], "num_speculative_tokens": 3})", "'method' is an empty list"},
       {R"({"method": [3], "num_speculative_tokens": 3})", "a list of names and JSON objects"},
       {R"({"method": ["ngram", "ngram"], "num_speculative_tokens": 3})", "configured twice"},
       {R"({"method": ["eagle3", "ngram"], "num_speculative_tokens": 3})",
        "'eagle3' always drafts, so that 'ngram' behind it never would"},
       {R"({"method": ["ngram", "eagle3"], "model": "/no/such/head", "num_speculative_tokens": 3})",
        "/no/such/head"},
       {R"({"method": ["ngram", "divination"], "num_speculative_tokens": 3})",
        "'divination' is not available"},
       {R"({"method": ["ngram", "mtp", "eagle", "eagle3", "draft_model"],
            "num_speculative_tokens": 1})",
        "an engine has at most 4"}});
}

TEST(SpeculativeConfig, NullIsNone) {
  for (const char* none : {"", "null"}) {
    const CommandResult result = start({"-sc", none});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(SpeculativeConfig, Method) {
  expect_config_refused(
      {{"{\"method\": ", "not valid JSON"},
       {"5", "a JSON object or a list of them"},
       {R"({"method": 3})", "'method' must be a string"},
       {R"({"num_speculative_tokens": 3})", "'method' (--spec-method) is missing"},
       {R"({"method": "eagle", "model": "", "num_speculative_tokens": 3})",
        "'model' is empty; give a value, or leave it out"},
       {R"({"method": "divination"})", "use one of: ngram, "},
       {R"({"method": "ngarm"})", "did you mean 'ngram'?"},
       {R"({"method": "xpress"})", "is not built yet"},
       {R"({"method": "custom_class"})", "loads Python code"}});
}

TEST(SpeculativeConfig, NumberOfDrafts) {
  expect_config_refused(
      {{R"({"method": "ngram"})", "'num_speculative_tokens' (--spec-tokens) is missing"},
       {R"({"method": "ngram", "num_speculative_tokens": 0})", "is 0; give 1 to 64, or leave"},
       {R"({"method": "ngram", "num_speculative_tokens": -1})",
        "is -1; give a number from 1 to 64"},
       {R"({"method": "ngram", "num_speculative_tokens": 10000})",
        "is 10000; give a number from 1 to 64"},
       {R"({"method": "ngram", "num_speculative_tokens": "four"})", "must be an integer"},
       {R"({"method": "ngram", "num_speculative_tokens": 4.5})", "must be an integer"},
       {R"({"method": "ngram", "num_speculative_token": 4})",
        "did you mean 'num_speculative_tokens'?"}});
}

// What is wrong with other fields and elements explains more.
TEST(SpeculativeConfig, AMissingNumberIsToldLast) {
  expect_config_refused(
      {{R"({"method": ["ngram", "divination"]})", "'divination' is not available"},
       {R"({"method": ["ngram", {"method": "suffix", "suffix_decoding_max_tree_depth": "deep"}]})",
        "entry 2: 'suffix_decoding_max_tree_depth' must be"},
       {R"({"method": ["ngram", "eagle3"], "prompt_lookup_max": "three"})",
        "entry 1: 'prompt_lookup_max' must be"},
       {R"({"method": ["eagle3", "ngram"]})", "'eagle3' always drafts"},
       {R"({"method": "ngram+ngram"})", "the list names 'ngram' twice"},
       {R"({"method": "ngram+"})", "'method' is ngram+, and a name is missing there"},
       {R"({"method": ["ngram", "suffix"]})",
        "entry 1: 'num_speculative_tokens' (--spec-tokens) is missing"},
       {R"({"method": ["suffix", "ngram"]})",
        "entry 2: 'num_speculative_tokens' (--spec-tokens) is missing"}});
}

// Files that say the method may say the number, too.
TEST(SpeculativeConfig, WithoutAMethodFilesMayTellTheNumber) {
  const std::string heads = std::string(foretoken::kSourceFolder) + "/tests/golden/";
  expect_config_refused({"-sc", R"({"model": ")" + heads + R"(heads/eagle"})"},
                        "is 0 or not given");
  expect_config_refused({"-sc", R"({"model": ")" + heads + R"(heads/mtp-2"})"},
                        "of the head is not the target's");
}

TEST(SpeculativeConfig, FieldsOfAnotherMethod) {
  expect_config_refused(
      {{R"({"method": "ngram", "num_speculative_tokens": 3, "model": "some/model"})",
        "model does nothing with method ngram"},
       {R"({"method": "ngram", "num_speculative_tokens": 3, "draft_vocab_size": 9})",
        "draft_vocab_size does nothing with method ngram"},
       {R"({"method": "ngram", "num_speculative_tokens": 3, "use_heterogeneous_vocab": true})",
        "use_heterogeneous_vocab is for draft models"},
       {R"({"method": "ngram", "num_speculative_tokens": 3, "draft_sample_method":
            "probabilistic"})",
        "draft_sample_method probabilistic does nothing with method ngram"},
       {R"({"method": "draft_model", "num_speculative_tokens": 3, "prompt_lookup_max": 3})",
        "prompt_lookup_max does nothing with method draft_model"},
       {R"({"method": "draft_model", "num_speculative_tokens": 3, "revision": "main"})",
        "'revision' needs 'model'"}});
}

TEST(SpeculativeConfig, WhatDraftsInParallelIsWhatItsFilesAre) {
  const std::string head =
      std::string(foretoken::kSourceFolder) + "/tests/golden/layered_heads/p_eagle-vllm";
  const std::string fields = R"(, "num_speculative_tokens": 3, "parallel_drafting": true})";
  const std::string read_as_head = "of the head is not the target's";
  expect_config_refused({"-sc", R"({"model": ")" + head + "\"" + fields}, read_as_head);
  expect_config_refused({"-sc", R"({"method": "eagle3", "model": ")" + head + "\"" + fields},
                        read_as_head);
  expect_config_refused({"-sc", R"({"method": "draft_model", "model": ")" + head + "\"" + fields},
                        "holds a P-EAGLE head, not what method pard reads");
}

TEST(SpeculativeConfig, EveryFieldOfVllmIsReadOrRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {R"("acceptance_method": "typical_acceptance_sampler")", "changes the text"},
      {R"("code_revision": "main")", "never run"},
      {R"("disable_lookahead_block_hashes": true)", "remove it"},
      {R"("draft_lm_head_quantization": "fp8")", "not built yet"},
      {R"("draft_load_config": {})", "--load-format"},
      {R"("draft_tensor_parallel_size": 3)", "is neither 1 nor the target's"},
      {R"("dspark_draft_topk": 4)", "'dspark_draft_topk' is not built yet"},
      {R"("fly_window_size": 2)", "lossy"},
      {R"("fly_entropy_threshold": 0.3)", "lossy"},
      {R"("fly_entropy_top_k": 3)", "lossy"},
      {R"("index_share_for_mtp_iteration": true)", "not built yet"},
      {R"("kv_cache_dtype": "fp8")", "not built yet"},
      {R"("parallel_drafting": true)", "goes with method draft_model or eagle3, not with ngram"},
      {R"("quantization": "fp8")", "quantization does nothing with method ngram"},
      {R"("speculative_token_tree": "[(0,)]")", "num_branches"},
      {R"("num_branches": 3)", "num_branches does nothing with method ngram"},
      {R"("suffix_decoding_max_tree_depth": 24)", "suffix"},
      {R"("suffix_decoding_max_cached_requests": 0)", "suffix"},
      {R"("suffix_decoding_max_spec_factor": 1.0)", "suffix"},
      {R"("suffix_decoding_min_token_prob": 0.1)", "suffix"},
      {R"("target_model_config": {})", "vLLM itself"},
      {R"("target_parallel_config": {})", "vLLM itself"},
      {R"("draft_model_config": {})", "vLLM itself"},
      {R"("draft_parallel_config": {})", "vLLM itself"},
      {R"("tensor_parallel_size": 1)", "no field"},
      {R"("xpress_topc": 3)", "belongs to method xpress, which is not built yet"},
      {R"("rejection_sample_method": "fly")", "changes the text"},
      {R"("rejection_sample_method": "copled")", "did you mean 'coupled'?"},
      {R"("lookup": 1)", "'lookup' is unknown; remove it"}};
  for (const auto& [field, part] : refused) expect_config_refused({"-sc", ngram_with(field)}, part);
  const CommandResult harmless =
      start({"-sc", ngram_with(R"("attention_backend": "auto", "draft_tensor_parallel_size": 1,
          "enforce_eager": false, "quantization": null, "parallel_drafting": false,
          "disable_padded_drafter_batch": true, "disable_eagle_block_drop": true,
          "use_local_argmax_reduction": true, "rejection_sample_method": "coupled",
          "draft_sample_method": "greedy", "enable_adaptive_verification": true,
          "prompt_lookup_min": 1, "prompt_lookup_max": 4)")});
  EXPECT_EQ(harmless.exit_code, 0) << harmless.err;
  const CommandResult warned =
      start({"--log-level", "warning", "-sc",
             ngram_with(R"("attention_backend": "FLASH_ATTN", "enforce_eager": true,
          "moe_backend": "triton")")});
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  for (const char* name : {"'attention_backend'", "'enforce_eager'", "'moe_backend'"}) {
    EXPECT_NE(warned.err.find(name), std::string::npos) << warned.err;
  }
}

TEST(SpeculativeConfig, RangesAndContradictions) {
  const std::pair<const char*, const char*> refused[] = {
      {R"("prompt_lookup_max": 0)", "'prompt_lookup_max' must be at least 1, not 0"},
      {R"("prompt_lookup_min": 5, "prompt_lookup_max": 4)", "must satisfy 1 <= min <= max <= 64"},
      {R"("length_policy": "adaptve")", "did you mean 'adaptive'?"},
      {R"("length_policy": "fixed", "enable_adaptive_verification": true)", "remove it"},
      {R"("synthetic_acceptance_rates": [0.8, 0.6, 0.4])", "needs \"rejection_sample_method\""},
      {R"("synthetic_acceptance_length": 2.0)", "needs \"rejection_sample_method\""}};
  for (const auto& [field, part] : refused) expect_config_refused({"-sc", ngram_with(field)}, part);
}

TEST(SpeculativeConfig, SyntheticRates) {
  const std::pair<const char*, const char*> refused[] = {
      {R"("synthetic_acceptance_rates": [0.8, 0.6])", "has 2 entries; give one for each of the 3"},
      {R"("synthetic_acceptance_rates": [0.8, 0.9, 0.1])", "rise from 0.8 to 0.9"},
      {R"("synthetic_acceptance_rates": [1.5, 0.9, 0.1])", "has 1.5; rates lie in [0, 1]"},
      {R"("synthetic_acceptance_rates": 0.5)", "must be an array of numbers"},
      {R"("synthetic_acceptance_length": 4.5)", "is 4.5; use 1 to 4"},
      {R"("synthetic_acceptance_length": 0)", "needs synthetic_acceptance_rates or"},
      {R"("synthetic_acceptance_length": 2, "synthetic_acceptance_rates": [0.8, 0.6, 0.4])",
       "exclude each other"},
      {R"("length_policy": "fixed")", "needs synthetic_acceptance_rates or"}};
  for (const auto& [field, part] : refused) {
    const std::string rule = R"("rejection_sample_method": "synthetic", )";
    expect_config_refused({"-sc", ngram_with(rule + field)}, part);
  }
}

TEST(SpeculativeConfig, Schedules) {
  const std::pair<const char*, const char*> refused[] = {
      {"[]", "must be a list of [first, last, K]"},
      {"[[1, 4]]", "must be a list of [first, last, K]"},
      {"[[1, 4, 1.5]]", "must be a list of [first, last, K]"},
      {"[[1, 4, 99999999999]]", "must be a list of [first, last, K]"},
      {"[[1, 4, -1]]", "asks for -1 drafts; use 0 to 64"},
      {"[[2, 4, 1]]", "the first range [2, 4] must begin with 1"},
      {"[[1, 4, 1], [4, 8, 0]]", "[4, 8] is empty or overlaps the one before"},
      {"[[1, 4, 1], [8, 6, 0]]", "[8, 6] is empty or overlaps the one before"}};
  const std::string name = R"("num_speculative_tokens_per_batch_size": )";
  for (const auto& [list, part] : refused)
    expect_config_refused({"-sc", ngram_with(name + list)}, part);
  expect_config_refused({"-sc", ngram_with(name + R"([[1, 4, 1]], "length_policy": "adaptive")")},
                        "contradict each other");
  EXPECT_EQ(start({"-sc", ngram_with(name + "[[1, 4, 9], [9, 64, 0]]")}).exit_code, 0);
  // It holds for drafters of different lengths.
  const std::string two =
      R"([{"method": "ngram", "num_speculative_tokens": 2, )" + name +
      R"([[1, 4, 3]]}, {"method": "draft_model", "num_speculative_tokens": 4}])";
  EXPECT_EQ(start({"-sc", two}).exit_code, 0);
}

TEST(SpeculativeConfig, Lists) {
  const std::string ngram = R"({"method": "ngram", "num_speculative_tokens": 3})";
  expect_config_refused({{"[]", "1 to 4 entries, not 0"}, {"[3]", "must be a JSON object"}});
  expect_config_refused({"-sc", "[" + ngram + R"(, {"method": "ngram"}])"},
                        "entry 2: 'num_speculative");
  expect_config_refused({"-sc", "[" + ngram + "," + ngram + "]"}, "twice");
  expect_config_refused(
      {"-sc", "[" + ngram + "," + ngram + "," + ngram + "," + ngram + "," + ngram + "]"},
      "1 to 4 entries, not 5");
  expect_config_refused(
      {"-sc", R"([{"method": "ngram", "num_speculative_tokens": 3, "length_policy": "off"},
                  {"method": "draft_model", "num_speculative_tokens": 3, "length_policy": "fixed"}])"},
      "length_policy differs from the first drafter's; it holds for the whole engine");
}

TEST(SpeculativeConfig, ShortFlags) {
  EXPECT_EQ(start({"--spec-method", "ngram", "--spec-tokens", "3"}).exit_code, 0);
  EXPECT_EQ(start({"-sc", R"({"prompt_lookup_max": 3})", "--spec-tokens", "3",
                   "--spec-length-policy", "fixed"})
                .exit_code,
            0);
  expect_config_refused({"--spec-tokens", "3"}, "'method' (--spec-method) is missing");
  expect_config_refused({"--spec-method", "ngram"},
                        "'num_speculative_tokens' (--spec-tokens) is missing");
  expect_config_refused({"--spec-method", "ngram", "--spec-tokens", "0"}, "is 0; give 1 to 64");
  expect_config_refused(
      {"-sc", R"({"method": "ngram"})", "--spec-tokens", "3", "--spec-method", "ngram"},
      "--spec-method and 'method' of --speculative-config say the same");
  expect_config_refused({"-sc", R"([{"method": "ngram"}])", "--spec-tokens", "3"},
                        "put 'num_speculative_tokens' into the list");
  expect_config_refused({"--step-time-table", "table.json"}, "add --speculative-config");
}

}  // namespace
}  // namespace foretoken
