#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"

// Rows of a step in two lanes (--enable-dbo): ids, counts and log-probabilities are those of the
// same layout with one lane, bit for bit, with every kind of drafter.

namespace foretoken {
namespace {

struct LaneCase {
  const char* name;
  DialledShape shape;
  Layout layout;  // without lanes
};
void PrintTo(const LaneCase& one, std::ostream* out) { *out << one.name; }

// Alone; sums of ranks; shared positions; experts in one engine and in several; windows and sinks.
std::vector<LaneCase> lane_cases() {
  const DialledShape mixture{.architecture = "DeepseekV3ForCausalLM"};
  return {{"Llama", {}, {}},
          {"Llama_TP2DCP2", {.num_layers = 4, .num_kv_heads = 1}, {.tp = 2, .dcp = 2}},
          {"DeepseekV3_DP2EP", mixture, {.dp = 2, .ep = true}},
          {"DeepseekV3_TP2EP", mixture, {.tp = 2, .ep = true}},
          {"Llama_TP2", {}, {.tp = 2}},
          {"Llama_PP2", {.num_layers = 4}, {.pp = 2}},
          {"Llama_TP2PP2", {.num_layers = 4}, {.tp = 2, .pp = 2}},
          {"DeepseekV3_PP2EP", mixture, {.tp = 2, .pp = 2, .ep = true}},
          {"Llama_DP2", {}, {.dp = 2}},
          {"DeepseekV3_TP2EPDCP2", mixture, {.tp = 2, .ep = true, .dcp = 2}},
          {"DeepseekV3_TP2DP2EP", mixture, {.tp = 2, .dp = 2, .ep = true}},
          {"DeepseekV3_DP4EP", mixture, {.dp = 4, .ep = true}},
          {"DeepseekV3_TP4DCP4", mixture, {.tp = 4, .dcp = 4}},
          {"GptOss_TP2EP", {.architecture = "GptOssForCausalLM"}, {.tp = 2, .ep = true}},
          {"Gemma3_TP2", {.architecture = "Gemma3ForCausalLM"}, {.tp = 2}}};
}

std::vector<std::string> kinds_of(const LaneCase& one) {
  const std::string& architecture = one.shape.architecture;
  if (architecture == "GptOssForCausalLM") return {"", "ngram", "draft_model", "eagle3"};
  if (architecture == "Gemma3ForCausalLM") return {"", "draft_model", "eagle"};
  return {"", "ngram", "draft_model", "eagle3", "mtp"};
}

class DualBatch : public testing::TestWithParam<LaneCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_for(GetParam().layout);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  const test::DialledSet& set() const {
    static std::map<std::string, std::unique_ptr<test::DialledSet>> known;
    auto& found = known[GetParam().name];
    if (found == nullptr) found = std::make_unique<test::DialledSet>(GetParam().shape);
    return *found;
  }

  // Of two lanes, most steps of several sequences are in them.
  RunResult run(bool in_lanes, Variant variant, const std::vector<Request>& requests) const {
    if (variant.drafter.empty()) variant.num_draft_tokens = 0;
    EngineConfig config = config_of(variant, set());
    Layout layout = GetParam().layout;
    layout.dbo = in_lanes;
    layout.apply(config);
    // The dialled head of EAGLE-3 has two heads.
    if (layout.tp > 2 && variant.drafter == "eagle3") {
      config.speculative[0].draft_tensor_parallel_size = 1;
    }
    const auto engine = start_engine(config);
    if (engine == nullptr) return {};
    const RunResult result = run_requests(*engine, variant, requests);
    expect_all_free(*engine);
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.num_steps_in_lanes > stats.num_steps / 4, in_lanes)
        << stats.num_steps_in_lanes << " of " << stats.num_steps << " steps";
    return result;
  }
};

Variant lane_variant(const std::string& kind, int steps_in_flight) {
  return {.name = kind,
          .num_draft_tokens = 3,
          .drafter = kind,
          .steps_in_flight = steps_in_flight,
          .batch = 16,
          .max_batched_tokens = 64};
}

// A step goes in lanes where every engine has two sequences.
int enough_prompts(const Layout& layout, int count) {
  return layout.dp > 2 ? count * layout.dp / 2 : count;
}

TEST_P(DualBatch, IdsAndCountsAreThoseOfOneLane) {
  const int count = GetParam().layout.dp > 2 ? 6 : num_test_prompts(6);
  for (const std::string& kind : kinds_of(GetParam())) {
    const auto requests =
        dialled_requests(set(), kind, enough_prompts(GetParam().layout, count), 16);
    const RunResult base = run(false, lane_variant(kind, 1), requests);
    for (const int in_flight : {1, 2}) {
      const std::string what = kind + ", in flight " + std::to_string(in_flight);
      const RunResult lanes = run(true, lane_variant(kind, in_flight), requests);
      EXPECT_EQ(count_differences(base, lanes, what), 0);
      EXPECT_EQ(lanes.stats.num_draft_tokens, base.stats.num_draft_tokens) << what;
      EXPECT_EQ(lanes.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << what;
    }
    EXPECT_EQ(base.stats.num_accepted_tokens > 0, !kind.empty()) << kind;
  }
}

// Prompts in pieces, op by op, and sequences that are preempted.
TEST_P(DualBatch, ChunkedAndPreempted) {
  const std::string kind = kinds_of(GetParam()).back();
  const auto requests = dialled_requests(set(), kind, enough_prompts(GetParam().layout, 8), 32);
  const RunResult base = run(false, lane_variant(kind, 1), requests);
  Variant chunked = lane_variant(kind, 2);
  chunked.name = "chunked";
  chunked.max_batched_tokens = 23;
  chunked.eager = true;
  EXPECT_EQ(count_differences(base, run(true, chunked, requests), "chunked"), 0);
  // Few sequences fill more than one of the blocks that four ranks share.
  if (GetParam().layout.dp > 1 || GetParam().layout.dcp > 2) return;
  Variant preempted = lane_variant(kind, 2);
  preempted.name = "preempted";
  preempted.num_blocks = 12 / GetParam().layout.dcp;
  preempted.prefix_caching = true;
  const RunResult tight = run(true, preempted, requests);
  EXPECT_EQ(count_differences(base, tight, "preempted"), 0);
  EXPECT_GT(tight.stats.num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(All, DualBatch, testing::ValuesIn(lane_cases()),
                         [](const auto& test) { return test.param.name; });

struct Outcome {
  std::vector<std::vector<int32_t>> ids;
  std::vector<float> numbers;  // log-probabilities and pooled states
  bool operator==(const Outcome&) const = default;
};

void add_logprobs(const std::vector<TokenLogprobs>& tokens, std::vector<float>& numbers) {
  for (const TokenLogprobs& token : tokens) {
    for (const Logprob& one : token.top) numbers.push_back(one.logprob);
  }
}

// Requests of every kind at once, so that a step has all of them in both lanes.
Outcome outcome_of(const Layout& layout, const std::vector<std::string>& methods) {
  std::vector<Request> requests;
  for (const std::string& method : methods) {
    for (const bool sampled : {false, true}) {
      for (Request& request : layout_requests(method, sampled, 2)) {
        request.sampling.prompt_logprobs = 1;
        requests.push_back(std::move(request));
      }
    }
    Request& pooled = requests.emplace_back();
    pooled.prompt = "A state that is the mean of its rows";
    pooled.pooling = Pooling::kMean;
  }
  Outcome outcome;
  const auto engine = start_engine(layout_config(layout, {methods.begin() + 1, methods.end()}));
  if (engine == nullptr) return outcome;
  for (const RequestOutput& output : engine->generate(requests)) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    outcome.ids.push_back(output.token_ids);
    add_logprobs(output.logprobs, outcome.numbers);
    add_logprobs(output.prompt_logprobs, outcome.numbers);
    outcome.numbers.insert(outcome.numbers.end(), output.embedding.begin(), output.embedding.end());
  }
  EXPECT_EQ(engine->stats().num_steps_in_lanes > 0, layout.dbo);
  return outcome;
}

// A trained model, whose every bit hangs on every sum.
TEST(DualBatchTrained, EveryNumberIsThatOfOneLane) {
  const std::vector<std::string> methods = {"", "ngram", "draft_model", "eagle3", "mtp"};
  const Outcome one = outcome_of({}, methods);
  const Outcome two = outcome_of({.dbo = true}, methods);
  EXPECT_GT(one.numbers.size(), 1000u);
  EXPECT_EQ(one.ids, two.ids);
  EXPECT_TRUE(one.numbers == two.numbers);
}

TEST(DualBatchTrained, WithTensorParallelRanks) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  const std::vector<std::string> methods = {"", "mtp"};
  EXPECT_TRUE(outcome_of({.tp = 2}, methods) == outcome_of({.tp = 2, .dbo = true}, methods));
}

std::string refusal_of(EngineConfig config) {
  std::unique_ptr<Engine> engine;
  return make_engine(config, &engine).message();
}

TEST(DualBatchRefusals, WhatCannotBeCutIsNamed) {
  EngineConfig in_pieces = layout_config({.dbo = true}, {});
  in_pieces.cudagraph_mode = "PIECEWISE";
  const std::string message = refusal_of(in_pieces);
  EXPECT_NE(message.find("--enable-dbo"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace
}  // namespace foretoken
