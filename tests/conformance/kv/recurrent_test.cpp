#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// Models whose layers keep states of sequences, which drafts change and rejected ones must not have
// changed: ids and counts are the same whoever drafts, itself such a model, however many steps are
// in flight, however prompts are cut and whoever had the slot before, and where states come from
// snapshots behind prefixes.

namespace foretoken {
namespace {

constexpr int kRecurrentTokens = 48;
constexpr int kRecurrentDrafts = 3;

std::vector<int32_t> golden_text(const test::GoldenCase& golden) {
  std::vector<int32_t> text;
  for (const nlohmann::json& entry : *golden.prompts) {
    for (const char* part : {"ids", "greedy"}) {
      const auto ids = entry.at(part).get<std::vector<int32_t>>();
      text.insert(text.end(), ids.begin(), ids.end());
    }
  }
  return text;
}

// Pieces of the golden texts, so that prompts are of many lengths, half of them sampled.
std::vector<Request> recurrent_requests(const test::GoldenCase& golden, int count) {
  const std::vector<int32_t> text = golden_text(golden);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request& request = requests.emplace_back();
    const int length = 1 + 11 * i % 67;
    const int begin = 29 * i % (static_cast<int>(text.size()) - length);
    request.prompt_token_ids.assign(text.begin() + begin, text.begin() + begin + length);
    request.sampling.max_tokens = kRecurrentTokens;
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.7f;
    request.sampling.seed = 40 + static_cast<uint64_t>(i);
    request.sampling.ignore_eos = true;
  }
  return requests;
}

class RecurrentIdentity : public testing::TestWithParam<test::GoldenCase> {
 protected:
  static EngineConfig config(const Variant& variant) {
    EngineConfig config = config_of(variant, GetParam());
    return config;
  }
  // The model drafts for itself: greedy drafts are right, sampled ones often not.
  static Variant drafting(Variant variant) {
    variant.num_draft_tokens = kRecurrentDrafts;
    variant.drafter = "draft_model";
    variant.draft_model = GetParam().folder;
    return variant;
  }

  // What the start of an engine ends with; empty: it starts.
  static std::string refusal_of(const EngineConfig& config) {
    std::unique_ptr<Engine> engine;
    return make_engine(config, &engine).message();
  }

  static RunResult run(const Variant& variant, const std::vector<Request>& requests,
                       const Layout& layout = {}) {
    EngineConfig all = config(variant);
    layout.apply(all);
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(all, &engine);
    EXPECT_TRUE(made.ok()) << variant.describe() << ": " << made.message();
    if (!made.ok()) return {};
    RunResult result;
    for (int round = 0; round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, requests);
    }
    expect_all_free(*engine);
    return result;
  }
  // Alone, one after the other, without drafts.
  static const RunResult& plain(const std::vector<Request>& requests) {
    static std::string of;
    static RunResult result;
    if (of != GetParam().name) result = run({.name = "plain"}, requests);
    of = GetParam().name;
    return result;
  }
  static RunResult expect_same(const Variant& variant, const Layout& layout = {}) {
    const std::vector<Request> requests = recurrent_requests(GetParam(), num_test_prompts(12));
    const RunResult other = run(variant, requests, layout);
    const std::string what = variant.describe() + ", " + layout.name();
    EXPECT_EQ(count_differences(plain(requests), other, what), 0);
    if (variant.num_draft_tokens > 0 && variant.policy == "fixed") {
      EXPECT_GT(other.stats.num_draft_tokens, other.stats.num_accepted_tokens) << what;
    }
    if (variant.drafter == "draft_model") {
      EXPECT_GT(other.stats.num_accepted_tokens, 0) << what;
    }
    return other;
  }
};

TEST_P(RecurrentIdentity, IdsAndCountsAreTheSameForAnyStepsInFlight) {
  for (const Variant& drafts : {drafting({}), Variant{.num_draft_tokens = 4},
                                Variant{.num_draft_tokens = 1, .drafter = "suffix"}}) {
    RunResult base;
    for (const int in_flight : {1, 2, 3}) {
      Variant variant = drafts;
      variant.name = "in flight";
      variant.steps_in_flight = in_flight;
      variant.batch = 12;
      const RunResult other = expect_same(variant);
      if (in_flight == 1) base = other;
      // One that learns drafts by what came before, and these arrive as they may.
      if (variant.drafter == "suffix") continue;
      EXPECT_EQ(other.stats.num_draft_tokens, base.stats.num_draft_tokens) << in_flight;
      EXPECT_EQ(other.stats.num_accepted_tokens, base.stats.num_accepted_tokens) << in_flight;
    }
  }
}

TEST_P(RecurrentIdentity, ChunkedPreemptedAndInSlotsOfOthers) {
  expect_same(drafting({.name = "chunked and eager",
                        .steps_in_flight = 2,
                        .batch = 12,
                        .max_batched_tokens = 23,
                        .eager = true}));
  const RunResult preempted = expect_same(
      drafting({.name = "preempted", .steps_in_flight = 2, .batch = 12, .num_blocks = 14}));
  EXPECT_GT(preempted.stats.num_preemptions, 0);
  // What the first run left in the slots and in the prefix cache.
  const RunResult warm = expect_same(drafting(
      {.name = "warm", .steps_in_flight = 2, .batch = 5, .prefix_caching = true, .warm = true}));
  EXPECT_GT(warm.stats.num_cached_tokens, 0);
  const RunResult resumed = expect_same(drafting({.name = "preempted with a prefix cache",
                                                  .steps_in_flight = 2,
                                                  .batch = 12,
                                                  .num_blocks = 14,
                                                  .prefix_caching = true}));
  EXPECT_GT(resumed.stats.num_preemptions, 0);
  // Made-up rows, whose times are measured at start, leave states in the slots.
  expect_same({.name = "adaptive", .num_draft_tokens = 4, .policy = "adaptive", .batch = 12});
}

// Turns of conversations, each as an engine without a prefix cache and without drafts has it.
class Turns {
 public:
  Turns(Engine& plain, Engine& cached) : plain_(plain), cached_(cached) {}

  // The prompt and what is said to it. `least`: tokens that are found.
  std::vector<int32_t> say(const std::vector<int32_t>& prompt, int64_t least) {
    Request request;
    request.prompt_token_ids = prompt;
    request.sampling.max_tokens = 40;
    request.sampling.temperature = num_turns_ % 2 == 0 ? 0.0f : 0.7f;
    request.sampling.seed = ++num_turns_;
    request.sampling.ignore_eos = true;
    const RequestOutput expected = plain_.generate({request})[0];
    const RequestOutput output = cached_.generate({request})[0];
    EXPECT_EQ(output.token_ids, expected.token_ids) << "turn " << num_turns_;
    EXPECT_EQ(expected.stats.num_cached_tokens, 0);
    EXPECT_GE(output.stats.num_cached_tokens, least) << "turn " << num_turns_;
    EXPECT_LT(output.stats.num_cached_tokens, static_cast<int64_t>(prompt.size()));
    num_cached_ += output.stats.num_cached_tokens;
    std::vector<int32_t> all = prompt;
    all.insert(all.end(), output.token_ids.begin(), output.token_ids.end());
    return all;
  }
  int64_t num_cached() const { return num_cached_; }

 private:
  Engine& plain_;
  Engine& cached_;
  uint64_t num_turns_ = 0;
  int64_t num_cached_ = 0;
};

// Three conversations behind one system prompt of 50 tokens, and two more turns of the first. The
// second one leaves the first one's prompt where no snapshot stands, and makes one for the third.
// `scarce`: there are two snapshots, which take each other's place.
int64_t run_turns(const std::vector<int32_t>& text, Engine& plain, Engine& cached, bool scarce) {
  const auto piece = [&](int begin, int count) {
    return std::vector<int32_t>(text.begin() + begin, text.begin() + begin + count);
  };
  const auto behind = [](std::vector<int32_t> first, const std::vector<int32_t>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const std::vector<int32_t> system = piece(0, 50);
  Turns turns(plain, cached);
  const auto first = turns.say(behind(system, piece(61, 30)), 0);
  turns.say(behind(system, piece(102, 31)), 0);
  turns.say(behind(system, piece(143, 33)), scarce ? 0 : 48);
  const auto second = turns.say(behind(first, piece(184, 10)), scarce ? 0 : 64);
  turns.say(behind(second, piece(205, 10)), scarce ? 0 : 112);
  return turns.num_cached();
}

TEST_P(RecurrentIdentity, PrefixesAreFoundAgain) {
  std::unique_ptr<Engine> plain;
  ASSERT_TRUE(make_engine(config({}), &plain).ok());
  struct Case {
    Variant variant;
    int num_snapshots = -1;
  };
  std::vector<Case> cases = {
      {{.name = "three in flight", .steps_in_flight = 3}},
      {{.num_draft_tokens = 4, .steps_in_flight = 2, .max_batched_tokens = 23}},
      {drafting({.steps_in_flight = 2})},
      {drafting({.name = "two snapshots", .steps_in_flight = 2}), 2}};
  const std::string& name = GetParam().name;
  if (name.starts_with("qwen3_next") || name.starts_with("deepseek_v4")) {
    cases.push_back({{.name = "module", .num_draft_tokens = 2, .drafter = "mtp"}});
  }
  for (auto& [variant, num_snapshots] : cases) {
    variant.prefix_caching = true;
    SCOPED_TRACE(variant.describe());
    EngineConfig cached = config(variant);
    cached.max_state_snapshots = num_snapshots;
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(cached, &engine);
    ASSERT_TRUE(made.ok()) << made.message();
    EXPECT_GT(engine->info().num_state_snapshots, 0);
    const bool is_scarce = num_snapshots >= 0;
    EXPECT_GT(run_turns(golden_text(GetParam()), *plain, *engine, is_scarce), 0);
    expect_all_free(*engine);
  }
}

TEST_P(RecurrentIdentity, WithoutSnapshotsNothingIsFound) {
  EngineConfig none = config({.prefix_caching = true});
  none.max_state_snapshots = 0;
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(make_engine(none, &engine).ok());
  EXPECT_EQ(engine->info().num_state_snapshots, 0);
  const std::vector<Request> requests(1, recurrent_requests(GetParam(), 7)[6]);
  EXPECT_EQ(engine->generate(requests)[0].stats.num_cached_tokens, 0);
  EXPECT_EQ(engine->generate(requests)[0].stats.num_cached_tokens, 0);
}

// The model, said to draft behind a token in one pass.
std::string masked_model(const test::GoldenCase& golden, const test::ScratchFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(golden.folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "config.json") {
      nlohmann::json config = nlohmann::json::parse(std::ifstream(entry.path()));
      config["pard_token"] = 1;
      folder.write(name, config.dump());
    } else {
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), folder.file(name));
    }
  }
  return folder.path();
}

// Of drafts in one pass the first is the model's own next token, so that it is right as long as the
// masks behind it have left nothing in a state.
TEST_P(RecurrentIdentity, MasksOfOnePassLeaveNothing) {
  const test::ScratchFolder folder;
  const std::string masked = masked_model(GetParam(), folder);
  std::vector<Request> requests = recurrent_requests(GetParam(), num_test_prompts(12));
  for (Request& request : requests) request.sampling.temperature = 0;
  const RunResult alone = run({.name = "alone"}, requests);
  const auto in_one_pass = [&](Variant variant) {
    variant.num_draft_tokens = kRecurrentDrafts;
    variant.drafter = "pard";
    variant.draft_model = masked;
    variant.steps_in_flight = 2;
    return variant;
  };
  for (const Variant& variant :
       {in_one_pass({.name = "batched", .batch = 12}),
        in_one_pass({.name = "chunked", .batch = 12, .max_batched_tokens = 23}),
        in_one_pass({.name = "preempted", .batch = 12, .num_blocks = 14}),
        in_one_pass({.name = "warm", .batch = 5, .prefix_caching = true, .warm = true})}) {
    const RunResult drafted = run(variant, requests);
    EXPECT_EQ(count_differences(alone, drafted, variant.describe()), 0);
    EXPECT_GT(drafted.stats.num_draft_tokens_per_pos[2], 0);
    EXPECT_GT(drafted.stats.num_draft_tokens_per_pos[0], 0);
    EXPECT_EQ(drafted.stats.num_accepted_tokens_per_pos[0],
              drafted.stats.num_draft_tokens_per_pos[0])
        << variant.describe();
  }
}

TEST_P(RecurrentIdentity, AbortsHarmNobody) {
  const std::vector<Request> requests = recurrent_requests(GetParam(), num_test_prompts(12));
  EngineConfig one = config(drafting({.steps_in_flight = 2, .prefix_caching = true}));
  one.max_num_seqs = 2;
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(make_engine(one, &engine).ok());
  for (const size_t after : {0, 1, 7}) {
    expect_cancel_harms_nobody(*engine, requests[3], requests[2], plain(requests).ids[2], after);
  }
  EXPECT_EQ(engine->generate({requests[1]})[0].token_ids, plain(requests).ids[1]);
}

// Stages before the last one do not know how long sequences are, so that they tell what may be
// taken back by the rows alone.
TEST_P(RecurrentIdentity, RanksDivideHeadsAndLayers) {
  for (const Layout& layout : {Layout{.pp = 2}, Layout{.tp = 2}, Layout{.dbo = true}}) {
    if (!missing_for(layout).empty()) continue;
    // Sums of several ranks have other bits, and some sizes of experts are not divided.
    EngineConfig divided = config({});
    layout.apply(divided);
    const std::string refusal = refusal_of(divided);
    if (!refusal.empty()) {
      EXPECT_TRUE(layout.tp > 1 && refusal.find("--tensor-parallel-size") != std::string::npos)
          << refusal;
      continue;
    }
    if (layout.tp > 1) {
      const std::vector<Request> requests = recurrent_requests(GetParam(), 4);
      const RunResult alone = run({.batch = 4}, requests, layout);
      const RunResult drafts = run(drafting({.steps_in_flight = 2, .batch = 4}), requests, layout);
      EXPECT_EQ(count_differences(alone, drafts, layout.name()), 0);
      continue;
    }
    expect_same(drafting({.name = "ranks", .steps_in_flight = 2, .batch = 12}), layout);
    const RunResult warm = expect_same({.name = "ranks",
                                        .num_draft_tokens = 4,
                                        .batch = 12,
                                        .max_batched_tokens = 23,
                                        .prefix_caching = true,
                                        .warm = true},
                                       layout);
    EXPECT_GT(warm.stats.num_cached_tokens, 0) << layout.name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentIdentity, testing::ValuesIn(test::recurrent_cases()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken
