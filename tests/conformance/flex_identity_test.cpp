#include <gtest/gtest.h>

#include <vector>

#include "conformance/layouts.h"
#include "device/resident_memory.h"
#include "model/golden.h"

// A mask and a score of positions and heads give the same ids with and without drafts, alone and in
// batches, on one rank and on two, which have half of the heads each.

namespace foretoken {
namespace {

constexpr const char* kFlexBackend =
    "flex(kv <= q and q - kv < (12 if h % 2 == 0 else 40); score - 0.02 * (q - kv))";

struct FlexRun {
  std::vector<std::vector<int32_t>> ids;
  int64_t accepted = 0;
};

FlexRun run_flex(const Layout& layout, const char* backend, const char* method) {
  EngineConfig config = layout_config(layout, {"eagle3"});
  config.attention_backend = backend;
  FlexRun run;
  const auto engine = start_engine(config);
  if (engine == nullptr) return run;
  EXPECT_EQ(engine->info().attention_backend, backend);
  for (const RequestOutput& output :
       run_in_batches(*engine, layout_requests(method, false, num_test_prompts(8)))) {
    run.ids.push_back(output.token_ids);
    run.accepted += output.stats.num_accepted_tokens;
  }
  return run;
}

TEST(FlexIdentity, DraftsAndRanksChangeNothing) {
  const FlexRun plain = run_flex({}, kFlexBackend, "");
  const FlexRun drafted = run_flex({}, kFlexBackend, "eagle3");
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_GT(drafted.accepted, 0);
  EXPECT_NE(run_flex({}, "portable", "").ids, plain.ids) << "the mask hides nothing";
  if (missing_devices(2).empty()) {
    EXPECT_EQ(run_flex({.tp = 2}, kFlexBackend, "eagle3").ids, plain.ids);
  }
}

// Prompts that see themselves in both directions: drafts, ranks, other requests beside and blocks
// that are taken away change nothing.
TEST(FlexIdentity, PromptsThatSeeThemselvesAreTheSame) {
  constexpr const char* kPrefix = "flex(kv <= q or prompt; )";
  const auto run = [&](const char* backend, const char* method, int tp, int num_blocks) {
    EngineConfig config = layout_config({.tp = tp}, {"eagle3"});
    config.attention_backend = backend;
    config.max_num_batched_tokens = 512;
    if (num_blocks > 0) config.num_gpu_blocks_override = num_blocks;
    std::vector<std::vector<int32_t>> ids;
    const auto engine = start_engine(config);
    if (engine == nullptr) return ids;
    const auto requests = layout_requests(method, false, num_test_prompts(8));
    for (const RequestOutput& output : run_in_batches(*engine, requests)) {
      ids.push_back(output.token_ids);
    }
    return ids;
  };
  const auto plain = run(kPrefix, "", 1, 0);
  EXPECT_EQ(run(kPrefix, "eagle3", 1, 0), plain);
  EXPECT_EQ(run(kPrefix, "eagle3", 1, 40), plain) << "with few blocks";
  EXPECT_NE(run("flex(kv <= q; )", "", 1, 0), plain) << "no prompt sees itself";
  if (missing_devices(2).empty()) {
    EXPECT_EQ(run(kPrefix, "eagle3", 2, 0), plain);
  }
}

// The same of a model with windows, whose prompts are longer than these.
TEST(FlexIdentity, PromptsSeeThemselvesUnderWindows) {
  const test::GoldenCase golden = test::golden_cases({"gemma3"}).front();
  const auto run = [&](const char* backend, Variant variant, int tp) {
    variant.draft_model = golden.folder;
    EngineConfig config = config_of(variant, golden.folder);
    config.max_model_len = golden.max_model_len;
    config.attention_backend = backend;
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    Layout{.tp = tp}.apply(config);
    std::vector<Request> requests;
    const auto text = golden.prompts->at(1).at("greedy").get<std::vector<int32_t>>();
    for (int i = 0; i < 6; ++i) {
      Request& request = requests.emplace_back();
      request.prompt_token_ids.assign(text.begin() + 20 * i, text.begin() + 20 * i + 60 + 15 * i);
      request.sampling.max_tokens = 40;
      request.sampling.temperature = 0;
      request.sampling.ignore_eos = true;
    }
    const auto engine = start_engine(config);
    return engine == nullptr ? RunResult{} : run_requests(*engine, variant, requests);
  };
  constexpr const char* kPrefix = "flex(kv <= q or prompt; )";
  const Variant alone{.name = "alone"};
  Variant drafted{.num_draft_tokens = 3, .drafter = "draft_model", .steps_in_flight = 2};
  drafted.batch = 6;
  const RunResult plain = run(kPrefix, alone, 1);
  ASSERT_EQ(plain.ids.size(), 6u);
  EXPECT_EQ(count_differences(plain, run(kPrefix, drafted, 1), "drafted"), 0);
  drafted.num_blocks = 16;
  EXPECT_EQ(count_differences(plain, run(kPrefix, drafted, 1), "few blocks"), 0);
  EXPECT_NE(run("flex(kv <= q; )", alone, 1).ids, plain.ids) << "no prompt sees itself";
  if (!missing_devices(2).empty()) return;
  EXPECT_EQ(count_differences(plain, run(kPrefix, drafted, 2), "two ranks"), 0);
}

TEST(FlexIdentity, APromptLongerThanAStepIsOneSentence) {
  EngineConfig config = layout_config({}, {});
  config.attention_backend = "flex(kv <= q or prompt; )";
  config.max_num_batched_tokens = 64;
  const auto engine = start_engine(config);
  ASSERT_NE(engine, nullptr);
  Request request;
  request.prompt_token_ids.assign(65, 5);
  const std::vector<RequestOutput> outputs = engine->generate({request});
  EXPECT_EQ(outputs.at(0).status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(outputs[0].status.message().find("--max-num-batched-tokens 65"), std::string::npos)
      << outputs[0].status.message();
}

struct OwnFlex {
  const char* mask;
  const char* score;
};
constexpr OwnFlex kOwnFlex[] = {{"q - kv < 12", ""},
                                {"", "score - 0.05 * (q - kv)"},
                                {"kv % 3 == 0 or q == kv", "score * 0.9"},
                                {"", ""},
                                {"q - kv < (8 if h % 2 == 0 else 30)", ""}};
constexpr const char* kAskingBackend = "flex(kv <= q and request; request)";

// The same prompts for each of these, one after the other.
std::vector<Request> requests_with_own(int num_prompts) {
  std::vector<Request> all;
  for (const Request& request : layout_requests("", false, num_prompts)) {
    for (const OwnFlex& own : kOwnFlex) {
      Request& one = all.emplace_back(request);
      one.flex_mask = own.mask;
      one.flex_score = own.score;
    }
  }
  return all;
}

std::vector<std::vector<int32_t>> ids_with_own(EngineConfig config, int num_prompts) {
  config.attention_backend = kAskingBackend;
  std::vector<std::vector<int32_t>> ids;
  const auto engine = start_engine(config);
  if (engine == nullptr) return ids;
  for (const RequestOutput& output : run_in_batches(*engine, requests_with_own(num_prompts))) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    ids.push_back(output.token_ids);
  }
  return ids;
}

// What a request says itself does what the engine's own expressions do, whatever others say beside
// it and though all have the same prompts: drafts, trees, ranks, few blocks, caches change nothing.
TEST(FlexOfRequests, IsAsTheEnginesOwn) {
  const int num_prompts = std::max(num_test_prompts(20) / 4, 2);
  const auto plain = ids_with_own(layout_config({}, {}), num_prompts);
  ASSERT_EQ(plain.size(), std::size(kOwnFlex) * static_cast<size_t>(num_prompts));
  for (size_t k = 0; k < std::size(kOwnFlex); ++k) {
    EngineConfig config = layout_config({}, {});
    const std::string mask = kOwnFlex[k].mask;
    config.attention_backend = "flex(kv <= q" + (mask.empty() ? "" : " and (" + mask + ")") + "; " +
                               kOwnFlex[k].score + ")";
    const auto engine = start_engine(config);
    ASSERT_NE(engine, nullptr);
    const auto outputs = run_in_batches(*engine, layout_requests("", false, num_prompts));
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].token_ids, plain[i * std::size(kOwnFlex) + k])
          << config.attention_backend;
    }
  }
  EXPECT_NE(plain[0], plain[3]) << "the mask hides nothing";
  EngineConfig drafted = layout_config({}, {"eagle3"});
  drafted.enable_prefix_caching = true;
  EXPECT_EQ(ids_with_own(drafted, num_prompts), plain);
  drafted.speculative.front().num_branches = 7;
  drafted.max_num_batched_tokens = 64;
  drafted.steps_in_flight = 2;
  EXPECT_EQ(ids_with_own(drafted, num_prompts), plain) << "trees";
  drafted.num_gpu_blocks_override = 40;
  EXPECT_EQ(ids_with_own(drafted, num_prompts), plain) << "few blocks";
  if (!missing_devices(2).empty()) return;
  EXPECT_EQ(ids_with_own(layout_config({.tp = 2}, {"eagle3"}), num_prompts), plain);
}

TEST(FlexOfRequests, OthersGoOnBesideAFaultyOne) {
  EngineConfig config = layout_config({}, {});
  config.attention_backend = kAskingBackend;
  const auto engine = start_engine(config);
  ASSERT_NE(engine, nullptr);
  std::vector<Request> requests = layout_requests("", false, 2);
  requests[0].flex_mask = "kv <= q; system(1)";
  const std::vector<RequestOutput> outputs = engine->generate(requests);
  EXPECT_EQ(outputs.at(0).status.message().find("flex_mask: character 8: "), 0u)
      << outputs[0].status.message();
  EXPECT_TRUE(outputs.at(1).status.ok());
  config.attention_backend = "flex(kv <= q; )";
  const auto deaf = start_engine(config);
  ASSERT_NE(deaf, nullptr);
  requests[0].flex_mask = "q - kv < 4";
  EXPECT_NE(
      deaf->generate(requests).at(0).status.message().find("--flex-mask 'kv <= q and request'"),
      std::string::npos);
}

// 10,000 requests, each with expressions that no other has: nothing is compiled, kept or grows.
TEST(FlexOfRequests, MemoryOfChangingOnesStaysFlat) {
  const int rounds = num_repeats(100);
  const test::DialledSet& set = test::DialledSet::of();
  std::vector<Request> requests = dialled_requests(set, "", 100, 2);
  EngineConfig config = config_of({.max_batched_tokens = 2048, .prefix_caching = true}, set);
  config.attention_backend = kAskingBackend;
  const auto engine = start_engine(config);
  ASSERT_NE(engine, nullptr);
  int64_t resident = 0;
  int number = 0;
  for (int i = 0; i < rounds; ++i) {
    for (Request& request : requests) {
      const std::string own = std::to_string(++number);
      request.flex_mask = "q - kv < " + own;
      request.flex_score = "score - 0.001 * " + own;
    }
    for (const RequestOutput& output : engine->generate(requests)) {
      ASSERT_TRUE(output.status.ok()) << output.status.message();
    }
    if (i == rounds / 2) resident = resident_bytes();
  }
  EXPECT_LT(resident_bytes() - resident, int64_t{8} << 20);
}

// 10,000 requests, and an expression that was not there before for each hundred of them.
TEST(FlexExpressions, MemoryOfChangingOnesStaysFlat) {
  constexpr int kRequestsOfEach = 100;
  const int num_expressions = num_repeats(100);
  const test::DialledSet& set = test::DialledSet::of();
  const std::vector<Request> requests = dialled_requests(set, "", kRequestsOfEach, 2);
  int64_t resident = 0;
  for (int i = 0; i < num_expressions; ++i) {
    EngineConfig config = config_of({.max_batched_tokens = 2048}, set);
    const std::string number = std::to_string(i + 2);
    config.attention_backend =
        "flex(kv <= q and q - kv < " + number + "; score - 0.001 * " + number + " * (q - kv))";
    const auto engine = start_engine(config);
    ASSERT_NE(engine, nullptr);
    for (const RequestOutput& output : engine->generate(requests)) {
      ASSERT_TRUE(output.status.ok()) << output.status.message();
    }
    config.attention_backend = "flex(kv < " + number + std::string(300, '(') + "; score)";
    std::unique_ptr<Engine> none;
    const std::string said = make_engine(config, &none).message();
    ASSERT_EQ(said.find("--flex-mask: "), 0u) << said;
    ASSERT_EQ(said.find('\n'), std::string::npos) << said;
    if (i == num_expressions / 2) resident = resident_bytes();
  }
  EXPECT_LT(resident_bytes() - resident, int64_t{16} << 20);
}

}  // namespace
}  // namespace foretoken
