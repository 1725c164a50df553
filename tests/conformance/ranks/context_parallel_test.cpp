#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"

// Ranks that share the positions of sequences (--decode-context-parallel-size): ids and counts are
// those of one rank with every drafter, behind prefix hits, in chunks and where sequences are
// preempted.

namespace foretoken {
namespace {

struct ContextCase {
  const char* name;
  DialledShape shape;
  Layout layout;
};
void PrintTo(const ContextCase& one, std::ostream* out) { *out << one.name; }

bool runs_all_contexts() { return num_test_prompts(200) == 200; }

// One head of keys and values; latents; windows; sinks, and experts that are dealt out.
std::vector<ContextCase> context_cases() {
  return {
      {"Llama_TP2", {.num_layers = 4, .num_kv_heads = 1}, {.tp = 2, .dcp = 2}},
      {"Llama_TP4", {.num_kv_heads = 2}, {.tp = 4, .dcp = 2}},
      {"Llama_TP2PP2", {.num_layers = 4, .num_kv_heads = 1}, {.tp = 2, .pp = 2, .dcp = 2}},
      {"DeepseekV3_TP2PP2",
       {.architecture = "DeepseekV3ForCausalLM"},
       {.tp = 2, .pp = 2, .dcp = 2}},
      {"DeepseekV3_TP2", {.architecture = "DeepseekV3ForCausalLM"}, {.tp = 2, .dcp = 2}},
      {"DeepseekV3_TP4", {.architecture = "DeepseekV3ForCausalLM"}, {.tp = 4, .dcp = 4}},
      {"DeepseekV3_DP2",
       {.architecture = "DeepseekV3ForCausalLM"},
       {.tp = 2, .dp = 2, .ep = true, .dcp = 2}},
      {"Gemma3_TP2", {.architecture = "Gemma3ForCausalLM", .num_kv_heads = 1}, {.tp = 2, .dcp = 2}},
      {"GptOss_TP4", {.architecture = "GptOssForCausalLM"}, {.tp = 4, .ep = true, .dcp = 2}}};
}

std::vector<std::string> context_kinds_of(const ContextCase& one) {
  const std::string& architecture = one.shape.architecture;
  if (architecture == "GptOssForCausalLM") return {"", "draft_model", "eagle3"};
  if (architecture == "Gemma3ForCausalLM") return {"", "draft_model", "eagle"};
  if (one.layout.dp > 1) return {"", "mtp"};
  if (!runs_all_contexts()) return {"", "ngram", "draft_model", "eagle3", "mtp"};
  return {"", "ngram", "draft_model", "eagle", "eagle3", "mtp", "mtp_chained"};
}

// Requests come alone and in bursts, end early, and leave ranks idle in between.
void run_random_load(Engine& engine, const std::vector<Request>& requests, int count) {
  std::mt19937 random(5);
  std::atomic<int> num_open{0};
  const auto wait_for_all = [&] {
    while (num_open.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (int i = 0; i < count; ++i) {
    num_open.fetch_add(1);
    std::string id;
    const Status status = engine.submit(
        requests[random() % requests.size()],
        [&](const RequestOutput& output) {
          EXPECT_TRUE(output.status.ok()) << output.status.message();
          if (output.request_finished) num_open.fetch_sub(1);
        },
        &id);
    ASSERT_TRUE(status.ok()) << status.message();
    if (random() % 4 == 0) engine.abort(id);
    if (random() % 8 > 0) continue;
    wait_for_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
  }
  wait_for_all();
}

class ContextParallel : public testing::TestWithParam<ContextCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(GetParam().layout.num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
    const std::string name = GetParam().name;
    const bool is_of_short_run = name == "Llama_TP2" || name == "DeepseekV3_TP4";
    if (!runs_all_contexts() && !is_of_short_run) GTEST_SKIP() << "a short run";
  }

  const test::DialledSet& set() const {
    static std::map<std::string, std::unique_ptr<test::DialledSet>> known;
    auto& found = known[GetParam().name];
    if (found == nullptr) found = std::make_unique<test::DialledSet>(GetParam().shape);
    return *found;
  }

  EngineConfig config(const Layout& layout, Variant variant) const {
    if (variant.drafter.empty()) variant.num_draft_tokens = 0;
    EngineConfig made = config_of(variant, set());
    layout.apply(made);
    // The dialled head of EAGLE-3 has two heads.
    if (layout.tp > 2 && variant.drafter == "eagle3") {
      made.speculative[0].draft_tensor_parallel_size = 1;
    }
    return made;
  }
  RunResult run(const Layout& layout, const Variant& variant,
                const std::vector<Request>& requests) const {
    const auto engine = start_engine(config(layout, variant));
    if (engine == nullptr) return {};
    if (variant.warm) run_requests(*engine, variant, requests);
    const RunResult result = run_requests(*engine, variant, requests);
    expect_all_free(*engine);
    return result;
  }
  void expect_no_hang(int num_requests) const {
    Variant variant = {.name = "mtp",
                       .num_draft_tokens = 3,
                       .drafter = "mtp",
                       .policy = "adaptive",
                       .steps_in_flight = 2,
                       .batch = 16,
                       .max_batched_tokens = 64,
                       .prefix_caching = true};
    const auto engine = start_engine(config(GetParam().layout, variant));
    ASSERT_NE(engine, nullptr);
    run_random_load(*engine, dialled_requests(set(), "mtp", 8, 16), num_requests);
    expect_all_free(*engine);
  }
};

Variant context_variant(const std::string& kind, int steps_in_flight) {
  return {.name = kind,
          .num_draft_tokens = 3,
          .drafter = kind,
          .steps_in_flight = steps_in_flight,
          .batch = 16,
          .max_batched_tokens = 64};
}

TEST_P(ContextParallel, IdsAndCountsAreThoseOfOneRank) {
  for (const std::string& kind : context_kinds_of(GetParam())) {
    const auto requests = dialled_requests(set(), kind, num_test_prompts(6), 24);
    const RunResult base = run({}, context_variant(kind, 1), requests);
    for (const int in_flight : {1, 2}) {
      const std::string what = kind + ", in flight " + std::to_string(in_flight);
      const RunResult shared = run(GetParam().layout, context_variant(kind, in_flight), requests);
      EXPECT_EQ(count_differences(base, shared, what), 0);
      EXPECT_EQ(shared.stats.num_draft_tokens, base.stats.num_draft_tokens) << what;
      EXPECT_EQ(shared.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << what;
    }
    EXPECT_EQ(base.stats.num_accepted_tokens > 0, !kind.empty()) << kind;
  }
}

// Prompts that begin so much earlier in the cycle that their first blocks are full.
std::vector<Request> with_long_prompts(const DialledShape& shape, std::vector<Request> requests) {
  constexpr int kMore = 150;
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<int32_t> ids;
    const int64_t begin = 31 * static_cast<int64_t>(i) + cycle.length() - kMore;
    for (int j = 0; j < kMore; ++j) ids.push_back(cycle.at(begin + j));
    auto& prompt = requests[i].prompt_token_ids;
    prompt.insert(prompt.begin(), ids.begin(), ids.end());
  }
  return requests;
}

// Blocks are as many times as long as there are ranks, so hits are coarser and few blocks go far.
TEST_P(ContextParallel, ChunkedPreemptedAndBehindPrefixHits) {
  const std::string last = context_kinds_of(GetParam()).back();
  const std::string kind = last == "mtp" ? "mtp_chained" : last;
  auto requests = dialled_requests(set(), kind, 12, 40);
  const auto expect_same = [&](const Variant& variant) {
    const RunResult base = run({}, context_variant(kind, 1), requests);
    const RunResult shared = run(GetParam().layout, variant, requests);
    EXPECT_EQ(count_differences(base, shared, variant.name), 0);
    EXPECT_GT(shared.stats.num_accepted_tokens, 0) << variant.name;
    return shared;
  };
  Variant chunked = context_variant(kind, 2);
  chunked.name = "chunked";
  chunked.max_batched_tokens = 23;
  chunked.eager = true;
  expect_same(chunked);
  Variant preempted = context_variant(kind, 2);
  preempted.name = "preempted";
  preempted.num_blocks = std::max(16 / GetParam().layout.dcp, 5);
  preempted.prefix_caching = true;
  if (GetParam().layout.dp == 1) {
    EXPECT_GT(expect_same(preempted).stats.num_preemptions, 0);
  }
  Variant hits = context_variant(kind, 2);
  hits.name = "hits";
  hits.prefix_caching = hits.warm = true;
  requests = with_long_prompts(GetParam().shape, {requests.begin(), requests.begin() + 4});
  EXPECT_GT(expect_same(hits).stats.num_cached_tokens, 0);
}

// As many blocks of as many bytes on a rank hold the positions of all ranks.
TEST_P(ContextParallel, ARankKeepsItsShareOfEveryBlock) {
  const Layout& layout = GetParam().layout;
  Layout whole = layout;
  whole.dcp = 1;
  Variant variant = context_variant("mtp", 1);
  variant.num_blocks = 40;
  const auto one = start_engine(config(whole, variant));
  const auto shared = start_engine(config(layout, variant));
  ASSERT_TRUE(one != nullptr && shared != nullptr);
  EXPECT_EQ(shared->info().num_blocks, one->info().num_blocks);
  EXPECT_EQ(shared->info().block_size, one->info().block_size * layout.dcp);
  EXPECT_EQ(shared->info().kv_cache_bytes, one->info().kv_cache_bytes);
}

TEST_P(ContextParallel, LoadWithAborts) { expect_no_hang(runs_all_contexts() ? 100 : 20); }

// Run by hand.
TEST_P(ContextParallel, DISABLED_ThousandStartsAndAborts) { expect_no_hang(1000); }

INSTANTIATE_TEST_SUITE_P(All, ContextParallel, testing::ValuesIn(context_cases()),
                         [](const auto& test) { return test.param.name; });

// Trained models, whose ids hang on every sum: sums over ranks may round otherwise, what decides is
// the same.
struct TrainedCase {
  const char* name;
  const char* model;
  std::vector<std::string> methods;
  Layout layout;
};
void PrintTo(const TrainedCase& one, std::ostream* out) { *out << one.name; }

std::unique_ptr<Engine> start_trained(const TrainedCase& one, const Layout& layout) {
  EngineConfig config =
      config_of({.steps_in_flight = 2, .max_batched_tokens = 128}, bundled_folder(one.model));
  config.dtype = "float32";
  for (const std::string& method : one.methods) {
    SpeculativeConfig drafter = bundled_drafter(method, 3).config;
    if (one.model == std::string("foretoken-2m-deepseek")) drafter.model.clear();
    // It has four heads of keys and values, which ranks cannot share.
    if (method == "draft_model") drafter.model = bundled_model();
    config.speculative.push_back(drafter);
  }
  layout.apply(config);
  return start_engine(config);
}

class TrainedContexts : public testing::TestWithParam<TrainedCase> {
 protected:
  static void expect_ids_of_one_rank(int count) {
    const TrainedCase& one = GetParam();
    const std::string missing = missing_devices(one.layout.num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
    const auto alone = start_trained(one, {});
    const auto shared = start_trained(one, one.layout);
    ASSERT_TRUE(alone != nullptr && shared != nullptr);
    std::vector<std::string> asked = one.methods;
    asked.insert(asked.begin(), "");
    for (const std::string& method : asked) {
      for (const bool sampled : {false, true}) {
        const auto requests = layout_requests(method, sampled, count);
        const auto base = run_in_batches(*alone, requests);
        const auto other = run_in_batches(*shared, requests);
        const int differing = count_undecided(base, other, sampled, method);
        EXPECT_LE(differing, 2) << method;
        const auto again = run_in_batches(*shared, requests);
        EXPECT_EQ(count_undecided(other, again, true, method), 0) << method << " repeated";
        std::cout << one.name << " " << (method.empty() ? "none" : method)
                  << (sampled ? " sampled" : " greedy") << ": differing " << differing << " of "
                  << other.size() << ", accepted " << sum_of_stats(other).num_accepted_tokens
                  << " (one rank " << sum_of_stats(base).num_accepted_tokens << ")" << std::endl;
        const bool may_lack_drafts = sampled && method == "ngram";
        EXPECT_TRUE(method.empty() || may_lack_drafts ||
                    sum_of_stats(other).num_accepted_tokens > 0)
            << method;
      }
    }
    expect_all_free(*shared);
  }
};

TEST_P(TrainedContexts, IdsAreThoseOfOneRank) {
  if (GetParam().layout.tp > 4) GTEST_SKIP() << "more ranks than cores";
  expect_ids_of_one_rank(num_test_prompts(8));
}

// Run by hand: the whole prompt set.
TEST_P(TrainedContexts, DISABLED_IdsOfTwoHundredPrompts) {
  expect_ids_of_one_rank(num_test_prompts(200));
}

INSTANTIATE_TEST_SUITE_P(
    All, TrainedContexts,
    testing::Values(
        TrainedCase{"Latent_TP2", "foretoken-2m-deepseek", {"ngram", "mtp"}, {.tp = 2, .dcp = 2}},
        TrainedCase{"Latent_TP4",
                    "foretoken-2m-deepseek",
                    {"ngram", "mtp"},
                    {.tp = 4, .ep = true, .dcp = 4}},
        TrainedCase{"Gqa_TP4", "foretoken-7m-draft", {"ngram", "draft_model"}, {.tp = 4, .dcp = 2}},
        TrainedCase{"Gqa_TP8", "foretoken-7m", {"ngram", "eagle3", "mtp"}, {.tp = 8, .dcp = 2}}),
    [](const auto& test) { return test.param.name; });

// What the start of an engine ends with.
std::string refusal_with(const Layout& layout, const std::string& model) {
  EngineConfig config = config_of({}, model);
  layout.apply(config);
  std::unique_ptr<Engine> engine;
  return make_engine(config, &engine).message();
}

TEST(ContextRefusals, SizesThatCannotBeAreNamed) {
  const std::string missing = missing_devices(4);
  if (!missing.empty()) GTEST_SKIP() << missing;
  const std::pair<Layout, const char*> cases[] = {
      {{.tp = 2, .dcp = 3}, "--decode-context-parallel-size 3 does not divide"},
      {{.tp = 4, .dcp = 2},
       "4 heads of keys and values, so that no two of 4 tensor parallel ranks"},
      {{.tp = 1, .dcp = 2}, "use 1"}};
  for (const auto& [layout, part] : cases) {
    const std::string message = refusal_with(layout, bundled_model());
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace foretoken
