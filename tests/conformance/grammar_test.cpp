#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "conformance/drafter_cases.h"
#include "engine/engine_impl.h"

// Structured outputs: every output has its form, and its ids are the same with any drafter, any
// number of steps in flight, alone or beside others, preempted, resumed, and with masks that come
// too late.

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int kGrammarTokens = 48;

StructuredOutputs form(int kind) {
  StructuredOutputs wanted;
  switch (kind % 7) {
    case 0:
      wanted.json = R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},
        "age":{"type":"integer","minimum":0,"maximum":99},"tags":{"type":"array","maxItems":2,
        "items":{"enum":["red","green","blue"]}}},"required":["name","age","tags"],
        "additionalProperties":false})";
      wanted.disable_any_whitespace = true;
      break;
    case 1:
      wanted.regex = "(The (cat|dog|bird) (sat|ran|sang)\\. ){2,4}[0-9]{1,3}";
      break;
    case 2:
      wanted.choice = {"yes", "no", "perhaps, but only if it rains tomorrow"};
      break;
    case 3:
      wanted.grammar =
          "root ::= item (\", \" item)* \".\"\nitem ::= [a-z]{1,8} (\" \" [a-z]{1,5})?";
      break;
    case 4:
      wanted.structural_tag = R"({"type":"structural_tag","format":{"type":"sequence","elements":[
        {"type":"const_string","value":"I say "},
        {"type":"tags_with_separator","separator":" and ","at_least_one":true,
         "stop_after_first":true,"tags":[{"type":"tag","begin":"<q>","end":"</q>",
         "content":{"type":"regex","pattern":"[a-z ]{1,24}"}}]},
        {"type":"json_schema","json_schema":{"enum":["yes","no"]}}]}})";
      break;
    case 6:
      wanted.json_object = true;
      break;
    default:
      wanted.grammar = "start: /[A-Z][a-z]+/ (\" \" /[a-z]{1,7}/)* \"!\"";
      break;
  }
  return wanted;
}

bool has_form(int kind, const std::string& text) {
  switch (kind % 7) {
    case 0: {
      const Json value = Json::parse(text, nullptr, false);
      return value.is_object() && value.size() == 3 && value["name"].is_string() &&
             value["age"].is_number_integer() && value["age"] <= 99 && value["tags"].is_array() &&
             value["tags"].size() <= 2;
    }
    case 1:
      return std::regex_match(text,
                              std::regex("(The (cat|dog|bird) (sat|ran|sang)\\. ){2,4}[0-9]{1,3}"));
    case 2:
      return text == "yes" || text == "no" || text == "perhaps, but only if it rains tomorrow";
    case 3:
      return std::regex_match(text, std::regex("[a-z]+( [a-z]+)?(, [a-z]+( [a-z]+)?)*\\."));
    case 4:
      return std::regex_match(text, std::regex("I say <q>[a-z ]{1,24}</q>\"(yes|no)\""));
    case 6:
      return Json::parse(text, nullptr, false).is_object();
    default:
      return std::regex_match(text, std::regex("[A-Z][a-z]+( [a-z]+)*!"));
  }
}

// Every third request has no grammar.
std::vector<Request> make_grammar_requests(int count, bool sampled) {
  const std::vector<std::string> prompts = bench_prompts(count);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request& request = requests.emplace_back();
    request.prompt = prompts[static_cast<size_t>(i)];
    request.sampling.max_tokens = kGrammarTokens;
    request.sampling.temperature = sampled ? 0.9f : 0.0f;
    request.sampling.top_p = sampled ? 0.97f : 1.0f;
    request.sampling.seed = 100 + static_cast<uint64_t>(i);
    if (i % 3 != 2) request.sampling.structured_outputs = form(i / 3 * 2 + i % 3);
  }
  return requests;
}

int kind_of(size_t i) { return static_cast<int>(i / 3 * 2 + i % 3); }

struct Outcome {
  std::vector<RequestOutput> outputs;
  RequestStats stats;
};

Outcome run_all(const EngineConfig& config, const std::vector<Request>& requests, int batch,
                const TestHooks& hooks = {}, int rounds = 1) {
  Outcome result;
  const auto engine = EngineImpl::create(config, hooks);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  for (int round = 0; engine.ok() && round < rounds; ++round) {
    result = {};
    for (size_t begin = 0; begin < requests.size(); begin += static_cast<size_t>(batch)) {
      const size_t end = std::min(requests.size(), begin + static_cast<size_t>(batch));
      for (RequestOutput& output : engine.value()->generate(
               std::vector<Request>(requests.begin() + static_cast<ptrdiff_t>(begin),
                                    requests.begin() + static_cast<ptrdiff_t>(end)))) {
        result.stats += output.stats;
        result.outputs.push_back(std::move(output));
      }
    }
  }
  if (engine.ok()) expect_all_free(*engine.value());
  return result;
}

void expect_forms(const std::vector<Request>& requests, const Outcome& result) {
  int num_ended = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const RequestOutput& output = result.outputs[i];
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    if (!requests[i].sampling.structured_outputs) continue;
    if (output.finish_reason == FinishReason::kLength) continue;
    ++num_ended;
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
    EXPECT_TRUE(has_form(kind_of(i), output.text)) << kind_of(i) % 7 << ": " << output.text;
  }
  EXPECT_GE(num_ended, static_cast<int>(requests.size()) / 4);
}

void expect_same_outcome(const Outcome& expected, const Outcome& actual, const std::string& what) {
  ASSERT_EQ(expected.outputs.size(), actual.outputs.size());
  int num_different = 0;
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const RequestOutput &a = expected.outputs[i], &b = actual.outputs[i];
    if (a.token_ids == b.token_ids && a.text == b.text && a.finish_reason == b.finish_reason) {
      continue;
    }
    if (num_different++ == 0) {
      ADD_FAILURE() << what << ", request " << i << ":\n" << a.text << "\nbut\n" << b.text;
    }
  }
  EXPECT_EQ(num_different, 0) << what;
}

EngineConfig config_with(Variant variant) { return config_of(variant, bundled_model()); }

const Outcome& base(bool sampled, int count) {
  static std::map<std::pair<bool, int>, Outcome> runs;
  Outcome& result = runs[{sampled, count}];
  if (result.outputs.empty()) {
    const auto requests = make_grammar_requests(count, sampled);
    result = run_all(config_with({.batch = 8}), requests, 8);
    expect_forms(requests, result);
  }
  return result;
}

class GrammarIdentity : public ::testing::TestWithParam<SampledDrafter> {
 protected:
  EngineConfig config(const Variant& variant, int num_draft_tokens = 4) const {
    EngineConfig config = config_with(variant);
    config.speculative = {bundled_drafter(GetParam().drafter, num_draft_tokens).config};
    return config;
  }
  void expect_base(const EngineConfig& config, int batch, const std::string& what,
                   const TestHooks& hooks = {}, int rounds = 1) const {
    const int count = num_test_prompts(9);
    const auto requests = make_grammar_requests(count, GetParam().sampled);
    TestHooks repairing = hooks;
    repairing.repair_share = 1e6;
    const Outcome result = run_all(config, requests, batch, repairing, rounds);
    expect_same_outcome(base(GetParam().sampled, count), result, what);
    std::cout << GetParam().drafter << ", " << what << ": drafted " << result.stats.num_draft_tokens
              << ", accepted " << result.stats.num_accepted_tokens << ", preemptions "
              << result.stats.num_preemptions << ", cached " << result.stats.num_cached_tokens
              << "\n";
    if (count >= 9) {
      EXPECT_GT(result.stats.num_accepted_tokens, 0);
    }
  }
};

TEST_P(GrammarIdentity, OverStepsInFlightAndBatches) {
  for (const int steps : {1, 2, 3}) {
    for (const int batch : {1, 12}) {
      expect_base(config({.steps_in_flight = steps, .batch = batch}), batch,
                  std::to_string(steps) + " steps, batch " + std::to_string(batch));
    }
  }
}

TEST_P(GrammarIdentity, UnderPreemptionChunksAndHits) {
  expect_base(config({.steps_in_flight = 2, .batch = 8, .max_batched_tokens = 40}), 8, "chunks");
  expect_base(config({.steps_in_flight = 3, .batch = 24, .num_blocks = 26}), 24, "few blocks");
  expect_base(config({.steps_in_flight = 2, .batch = 8, .prefix_caching = true}), 8, "hits", {}, 2);
  expect_base(config({.steps_in_flight = 2, .batch = 8, .eager = true}), 8, "eager");
}

// No time at all for masks with every sequence slow, and hardly any: each token waits, none
// changes.
TEST_P(GrammarIdentity, WhenMasksAreLate) {
  for (const auto& [budget, slow] :
       {std::pair<int64_t, int64_t>{0, 0}, {50'000, GrammarThread::kSlowNs}}) {
    TestHooks hooks;
    hooks.mask_budget_ns = budget;
    hooks.slow_mask_ns = slow;
    expect_base(config({.steps_in_flight = 2, .batch = 6}), 6,
                "budget " + std::to_string(budget) + " slow " + std::to_string(slow), hooks);
  }
}

// A text that nobody would guess: only the masks can tell a drafter what comes, and repair what was
// looked up. No mask is late, however busy the machine is.
TEST_P(GrammarIdentity, DraftsAreMadeUnderTheMasks) {
  TestHooks hooks;
  hooks.repair_share = 1e6;
  hooks.mask_budget_ns = hooks.slow_mask_ns = int64_t{60} * 1'000'000'000;
  const auto engine = EngineImpl::create(config({.steps_in_flight = 2, .batch = 4}), hooks);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  std::vector<Request> requests = make_grammar_requests(4, GetParam().sampled);
  StructuredOutputs wanted;
  wanted.choice = {"zqxv kjwq 8841 ~~ vvkq xzzq jjqk 0975 <> qpqp wvwv 3316 ##"};
  for (Request& request : requests) {
    request.sampling.structured_outputs = wanted;
    request.sampling.max_tokens = 100;
  }
  RequestStats stats;
  for (const RequestOutput& output : engine.value()->generate(requests)) {
    EXPECT_EQ(output.text, wanted.choice[0]);
    stats += output.stats;
  }
  std::cout << GetParam().drafter << ": drafted " << stats.num_draft_tokens << ", accepted "
            << stats.num_accepted_tokens << "\n";
  EXPECT_GT(stats.num_accepted_tokens * 2, stats.num_draft_tokens);
  EXPECT_GT(stats.num_accepted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(AllDrafters, GrammarIdentity, ::testing::ValuesIn(sampled_drafters()));

class GrammarEngine : public ::testing::Test {
 protected:
  void SetUp() override { start(2); }
  void start(int num_draft_tokens) {
    Variant variant{.num_draft_tokens = num_draft_tokens, .steps_in_flight = 2};
    auto made = EngineImpl::create(config_with(variant), {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    engine_ = std::move(made).value();
  }
  static Request request(StructuredOutputs wanted, int max_tokens = kGrammarTokens) {
    Request request;
    request.prompt = "Once upon a time";
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.sampling.structured_outputs = std::move(wanted);
    return request;
  }
  RequestOutput run_one(Request request) {
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    return engine_->generate(std::move(requests))[0];
  }
  std::unique_ptr<EngineImpl> engine_;
};

StructuredOutputs regex(const char* text) {
  StructuredOutputs wanted;
  wanted.regex = text;
  return wanted;
}

TEST_F(GrammarEngine, ComposesWithTheOtherFields) {
  Request penal = request(regex("[a-z ]{20,30}"));
  penal.sampling.repetition_penalty = 1.3f;
  penal.sampling.frequency_penalty = 0.5f;
  penal.sampling.logit_bias = {{100, 50.0f}};
  penal.sampling.logprobs = 3;
  penal.sampling.prompt_logprobs = 1;
  penal.sampling.min_tokens = 4;
  const RequestOutput output = run_one(penal);
  ASSERT_TRUE(output.status.ok()) << output.status.message();
  EXPECT_TRUE(std::regex_match(output.text, std::regex("[a-z ]{20,30}"))) << output.text;
  EXPECT_EQ(output.logprobs.size(), output.token_ids.size());
  Request stop = request(regex("ab+"));
  stop.sampling.stop = {"bbb"};
  const RequestOutput stopped = run_one(stop);
  EXPECT_TRUE(stopped.stop_reason == "bbb" ? stopped.text == "a"
                                           : stopped.text == "ab" || stopped.text == "abb")
      << stopped.text;
  Request many = request(form(0));
  many.sampling.n = 3;
  many.sampling.temperature = 1;
  many.sampling.max_tokens = 120;
  std::vector<Request> requests;
  requests.push_back(many);
  for (const RequestOutput& choice : engine_->generate(std::move(requests))) {
    EXPECT_TRUE(choice.status.ok());
    if (choice.finish_reason == FinishReason::kStop) {
      EXPECT_TRUE(has_form(0, choice.text)) << choice.text;
    }
  }
}

TEST_F(GrammarEngine, IgnoredEosEndsWhereNothingElseCanCome) {
  Request longest = request(regex("a{1,9}"));
  longest.sampling.ignore_eos = true;
  const RequestOutput output = run_one(longest);
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_EQ(output.text, "aaaaaaaaa");
}

TEST_F(GrammarEngine, ContradictionsAreThatRequestsError) {
  Request impossible = request(regex("yes"));
  impossible.sampling.min_tokens = 40;
  Request other = request(regex("yes"));
  other.sampling.allowed_token_ids = {700, 701};
  std::vector<Request> requests{impossible, request(regex("yes")), other};
  const auto outputs = engine_->generate(std::move(requests));
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kError);
  EXPECT_NE(outputs[0].status.message().find("min_tokens"), std::string::npos)
      << outputs[0].status.message();
  EXPECT_EQ(outputs[1].text, "yes");
  EXPECT_EQ(outputs[2].finish_reason, FinishReason::kError);
  EXPECT_NE(outputs[2].status.message().find("allowed_token_ids"), std::string::npos);
  expect_all_free(*engine_);
}

TEST_F(GrammarEngine, RefusalsNameTheFieldAndHurtNobody) {
  StructuredOutputs wrong;
  wrong.json = R"({"oneOf":[{"type":"integer"},{"type":"number"}]})";
  std::vector<Request> requests{request(wrong), request(regex("(")), request(regex("yes")),
                                request({})};
  const auto outputs = engine_->generate(std::move(requests));
  EXPECT_EQ(outputs[0].status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(outputs[0].status.message().find("oneOf"), std::string::npos);
  EXPECT_EQ(outputs[1].status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(outputs[2].text, "yes");
  EXPECT_NE(outputs[3].status.message().find("names no form"), std::string::npos);
  Request pooled = request(regex("a"));
  pooled.pooling = Pooling::kMean;
  EXPECT_NE(run_one(pooled).status.message().find("structured_outputs"), std::string::npos);
  expect_all_free(*engine_);
}

TEST(GrammarRules, SyntheticVerificationIsRefused) {
  EngineConfig config = config_with({.num_draft_tokens = 3});
  config.speculative[0].rejection_sample_method = "synthetic";
  config.speculative[0].synthetic_acceptance_rates = {0.8, 0.6, 0.4};
  const auto engine = EngineImpl::create(config, {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  Request request;
  request.prompt = "Once";
  request.sampling.structured_outputs = regex("a");
  const auto output = engine.value()->generate({request})[0];
  EXPECT_NE(output.status.message().find("synthetic"), std::string::npos)
      << output.status.message();
}

TEST_F(GrammarEngine, AbortedAnywhereFreesEverything) {
  const Request victim = request(form(6), 200);
  const Request neighbour = request(form(1));
  const auto expected = run_one(neighbour).token_ids;
  for (const size_t after : {1, 5, 17}) {
    (void)expect_cancel_harms_nobody(*engine_, victim, neighbour, expected, after);
  }
}

// Shutting down while grammars are compiled and masks computed.
TEST_F(GrammarEngine, ManyAreDroppedWithTheEngine) {
  std::atomic<int> num_ended{0};
  for (int i = 0; i < 40; ++i) {
    StructuredOutputs wanted;
    wanted.json = R"({"type":"object","properties":{"field_)" + std::to_string(i) +
                  R"(":{"type":"string"}}})";
    const Status status = engine_->submit(
        request(wanted, 500),
        [&](const RequestOutput& output) { num_ended += output.request_finished ? 1 : 0; },
        nullptr);
    EXPECT_TRUE(status.ok());
  }
  engine_ = nullptr;
  EXPECT_EQ(num_ended.load(), 40);
}

// Schemas that cost seconds to compile, and masks that cost much: others are answered meanwhile.
// What they lose is measured by bench/hostile.py.
TEST_F(GrammarEngine, OthersEndBesideHostileTexts) {
  constexpr int kHostile = 4;
  std::atomic<int> num_ended{0};
  for (int i = 0; i < kHostile; ++i) {
    StructuredOutputs wanted;
    wanted.regex = "(a|b|c){1,40}x" + std::to_string(i) + ".{300}(foo|bar){1,300}z";
    if (i % 2 == 1) {
      wanted.regex.clear();
      wanted.json = R"({"type":"array","minItems":1000,"items":{"type":"object","properties":{)";
      for (int p = 0; p < 900; ++p) {
        wanted.json += (p == 0 ? "\"p" : ",\"p") + std::to_string(p * 10 + i) +
                       R"(":{"type":"string","pattern":"^[a-z]{3,90}[0-9]{2,40}$"})";
      }
      wanted.json += "}}}";
    }
    const auto count = [&](const RequestOutput& output) { num_ended += output.request_finished; };
    EXPECT_TRUE(engine_->submit(request(wanted, 4), count, nullptr).ok());
  }
  for (int i = 0; i < 8; ++i) {
    Request plain = request({}, 200);
    plain.sampling.structured_outputs.reset();
    plain.sampling.ignore_eos = true;
    EXPECT_EQ(run_one(std::move(plain)).token_ids.size(), 200u);
  }
  engine_ = nullptr;
  EXPECT_EQ(num_ended.load(), kHostile);
}

}  // namespace
}  // namespace foretoken
