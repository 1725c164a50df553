#include "engine/start/speculative_checks.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "engine/start/speculation_rules.h"

namespace foretoken {
namespace {

SpeculativeConfig ngram(int num_draft_tokens = 3) {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = num_draft_tokens;
  return config;
}

EngineConfig engine_with(std::vector<SpeculativeConfig> drafters) {
  EngineConfig config;
  config.speculative = std::move(drafters);
  return config;
}

void expect_refused(const EngineConfig& config, const std::string& part) {
  const Status status = check_speculative(config);
  EXPECT_FALSE(status.ok()) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

void expect_refused(const std::function<void(SpeculativeConfig&)>& change,
                    const std::string& part) {
  SpeculativeConfig config = ngram();
  change(config);
  expect_refused(engine_with({config}), part);
}

TEST(SpeculativeChecks, NothingAndPlainNgramPass) {
  EXPECT_TRUE(check_speculative(EngineConfig()).ok());
  EXPECT_TRUE(check_speculative(engine_with({ngram()})).ok());
}

TEST(SpeculativeChecks, NumbersHaveRanges) {
  const std::string range = "give a number from 1 to 64";
  for (const int k : {0, -1, 65, 10000}) {
    expect_refused([k](SpeculativeConfig& c) { c.num_speculative_tokens = k; },
                   "num_speculative_tokens is " + std::to_string(k));
    expect_refused([k](SpeculativeConfig& c) { c.num_speculative_tokens = k; }, range);
  }
  expect_refused([](SpeculativeConfig& c) { c.max_model_len = -3; }, "max_model_len is -3");
  EngineConfig narrow = engine_with({ngram()});
  narrow.max_num_batched_tokens = 1;
  expect_refused(narrow, "--max-num-batched-tokens 1 leaves no row");
}

TEST(SpeculativeChecks, WordsAreKnownOnes) {
  expect_refused([](SpeculativeConfig& c) { c.method = "xpress"; }, "'xpress' is not built yet");
  expect_refused([](SpeculativeConfig& c) { c.method = "eagle"; }, "needs `model`");
  expect_refused([](SpeculativeConfig& c) { c.draft_sample_method = "lucky"; }, "'lucky'");
  expect_refused([](SpeculativeConfig& c) { c.length_policy = "best"; },
                 "use adaptive, fixed or off");
  for (const char* method : {"standard", "strict", "probabilistic", "block"}) {
    SpeculativeConfig lossless = ngram();
    lossless.rejection_sample_method = method;
    EXPECT_TRUE(check_speculative(engine_with({lossless})).ok()) << method;
    EXPECT_EQ(acceptance_method(lossless).value(), AcceptanceMethod::kCoupled) << method;
  }
  expect_refused([](SpeculativeConfig& c) { c.rejection_sample_method = "fly"; },
                 "changes the text");
  expect_refused([](SpeculativeConfig& c) { c.rejection_sample_method = "typical"; },
                 "is unknown; use coupled or synthetic");
  EngineConfig nothing = engine_with({SpeculativeConfig()});
  nothing.speculative[0].num_speculative_tokens = 3;
  expect_refused(nothing, "neither a method nor a model");
}

TEST(SpeculativeChecks, SyntheticAcceptanceIsWhole) {
  const auto refused = [](std::vector<double> rates, double length, const std::string& part) {
    expect_refused(
        [&](SpeculativeConfig& c) {
          c.rejection_sample_method = "synthetic";
          c.synthetic_acceptance_rates = rates;
          c.synthetic_acceptance_length = length;
        },
        part);
  };
  refused({}, 0, "needs synthetic_acceptance_rates");
  refused({0.5, 0.4, 0.3}, 2, "exclude each other");
  refused({0.5, 0.4}, 0, "has 2 entries; give one for each of the 3");
  refused({0.5, 0.4, 0.3, 0.2}, 0, "has 4 entries");
  refused({1.5, 0.4, 0.3}, 0, "has 1.5; rates lie in [0, 1]");
  refused({0.5, -0.1, -0.2}, 0, "has -0.1");
  refused({std::numeric_limits<double>::quiet_NaN(), 0.4, 0.3}, 0, "rates lie in [0, 1]");
  refused({0.5, 0.6, 0.3}, 0, "rise from 0.5 to 0.6");
  refused({}, 0.5, "synthetic_acceptance_length is 0.5; use 1 to 4");
  refused({}, 4.5, "use 1 to 4");
  // MTP may leave the number of drafts to its model.
  SpeculativeConfig mtp;
  mtp.method = "mtp";
  mtp.rejection_sample_method = "synthetic";
  mtp.synthetic_acceptance_rates.assign(kMaxDraftTokens + 1, 0.5);
  expect_refused(engine_with({mtp}), "has 65 entries; at most 64 are possible");
  expect_refused([](SpeculativeConfig& c) { c.synthetic_acceptance_length = 2; },
                 "needs \"rejection_sample_method\": \"synthetic\"");
  expect_refused([](SpeculativeConfig& c) { c.synthetic_acceptance_rates = {1, 1, 1}; },
                 "needs \"rejection_sample_method\": \"synthetic\"");
}

TEST(SpeculativeChecks, SchedulesBeginAtOneAndDoNotOverlap) {
  const auto with = [](std::vector<DraftSchedule> schedule) {
    return [schedule](SpeculativeConfig& c) { c.num_speculative_tokens_per_batch_size = schedule; };
  };
  SpeculativeConfig right = ngram();
  with({{1, 2, 3}, {5, 8, 0}})(right);
  EXPECT_TRUE(check_speculative(engine_with({right})).ok());
  expect_refused(with({{2, 4, 3}}), "num_speculative_tokens_per_batch_size");
  expect_refused(with({{1, 4, 3}, {4, 8, 1}}), "num_speculative_tokens_per_batch_size");
  expect_refused(with({{1, 0, 3}}), "num_speculative_tokens_per_batch_size");
  expect_refused(with({{1, 4, -1}}), "num_speculative_tokens_per_batch_size");
  right.length_policy = "off";
  expect_refused(engine_with({right}), "exclude each other");
}

TEST(SpeculativeChecks, DraftersAgreeOnWhatHoldsForTheEngine) {
  SpeculativeConfig other = ngram();
  other.prompt_lookup_max = 7;
  EXPECT_TRUE(check_speculative(engine_with({ngram(), other})).ok());
  const auto differs = [&](const std::function<void(SpeculativeConfig&)>& change,
                           const std::string& field) {
    SpeculativeConfig second = other;
    change(second);
    expect_refused(engine_with({ngram(), second}), field + " differs from the first drafter's");
  };
  differs([](SpeculativeConfig& c) { c.length_policy = "fixed"; }, "length_policy");
  differs([](SpeculativeConfig& c) { c.num_speculative_tokens_per_batch_size = {{1, 2, 3}}; },
          "num_speculative_tokens_per_batch_size");
  differs(
      [](SpeculativeConfig& c) {
        c.rejection_sample_method = "synthetic";
        c.synthetic_acceptance_length = 2;
      },
      "rejection_sample_method");
  expect_refused(engine_with(std::vector<SpeculativeConfig>(5, ngram())),
                 "5 drafters are configured; an engine has at most 4");
}

TEST(SpeculativeChecks, MethodsGetTheNameOfTheRegistry) {
  ModelConfig target;
  target.vocab_size = 100;
  EngineConfig config = engine_with({ngram()});
  config.speculative[0].method = "ngram_gpu";
  ASSERT_TRUE(resolve_methods(config, {""}, target).ok());
  EXPECT_EQ(config.speculative[0].method, "ngram");
  config.speculative.push_back(ngram(5));
  const Status twice = resolve_methods(config, {"", ""}, target);
  EXPECT_NE(twice.message().find("configured twice"), std::string::npos) << twice.message();
}

TEST(SpeculativeChecks, ListsEndWithTheDrafterThatAlwaysDrafts) {
  ModelConfig target;
  target.vocab_size = 100;
  SpeculativeConfig head;
  head.method = "eagle";
  head.model = "head";
  head.num_speculative_tokens = 3;
  EngineConfig config = engine_with({ngram(), head});
  config.speculative[0].leads = true;
  EXPECT_TRUE(resolve_methods(config, {"", ""}, target).ok());
  config = engine_with({head, ngram()});
  EXPECT_TRUE(resolve_methods(config, {"", ""}, target).ok()) << "not a list";
  config.speculative[0].leads = true;
  const Status status = resolve_methods(config, {"", ""}, target);
  EXPECT_NE(status.message().find("'eagle' always drafts"), std::string::npos) << status.message();
}

TEST(SpeculativeChecks, ADraftersLengthIsAtMostTheTargets) {
  ModelConfig target;
  target.vocab_size = 100;
  EngineConfig config = engine_with({ngram()});
  config.max_model_len = 50;
  config.speculative[0].max_model_len = 51;
  const Status status = resolve_methods(config, {""}, target);
  EXPECT_NE(status.message().find("max_model_len 51 exceeds the target's, 50"), std::string::npos)
      << status.message();
  config.max_model_len = -1;  // not known yet
  EXPECT_TRUE(resolve_methods(config, {""}, target).ok());
}

}  // namespace
}  // namespace foretoken
