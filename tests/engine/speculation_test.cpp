#include <algorithm>
#include <atomic>
#include <future>
#include <map>

#include "engine/dialled_engine.h"
#include "engine/engine_impl.h"
#include "support/dialled_set.h"

// Speculation through the whole engine, on dialled checkpoints: the text is known before it runs,
// and how often drafts are accepted too.

namespace foretoken {
namespace {

constexpr int kDrafts = 3;

class Speculation : public testing::Test {
 protected:
  static const test::DialledSet& set() { return test::DialledSet::of(); }
  static const DialledCycle& cycle() {
    static const DialledCycle cycle(set().shape().vocab_size, set().shape().seed);
    return cycle;
  }

  // Without drafters.
  static EngineConfig config(const std::string& kind = "") {
    EngineConfig config;
    config.model = set().target(kind);
    config.device = engine_test_device();
    config.max_model_len = 512;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 64;
    config.num_gpu_blocks_override = 8 * 32;
    return config;
  }
  static EngineConfig config_with(const std::string& kind, int num_draft_tokens = kDrafts) {
    EngineConfig with = config(kind);
    with.speculative = {set().drafter(kind, num_draft_tokens)};
    return with;
  }
  static std::unique_ptr<EngineImpl> make(const EngineConfig& config, const TestHooks& hooks = {}) {
    auto engine = EngineImpl::create(config, hooks);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }

  static Request request(int begin, int length, int max_tokens) {
    Request request;
    for (int i = begin; i < begin + length; ++i) request.prompt_token_ids.push_back(cycle().at(i));
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    return request;
  }
  static std::vector<Request> requests(int count, int max_tokens) {
    std::vector<Request> all;
    for (int i = 0; i < count; ++i) all.push_back(request(37 * i, 3 + 11 * i, max_tokens));
    return all;
  }
  static void expect_dialled_text(const std::vector<RequestOutput>& outputs, int max_tokens) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int at = static_cast<int>(i);
      ASSERT_TRUE(outputs[i].status.ok()) << outputs[i].status.message();
      std::vector<int32_t> expected;
      for (int t = 0; t < max_tokens; ++t) {
        expected.push_back(cycle().at(37 * at + 3 + 11 * at + t));
      }
      EXPECT_EQ(outputs[i].token_ids, expected) << i;
    }
  }
  static RequestStats sum_of(const std::vector<RequestOutput>& outputs) {
    RequestStats sum;
    for (const RequestOutput& output : outputs) sum += output.stats;
    return sum;
  }
};

class SpeculationWith : public Speculation, public testing::WithParamInterface<std::string> {};

TEST_P(SpeculationWith, TheTextIsTheTargetsAndDraftsAreAcceptedAsDialled) {
  const auto engine = make(config_with(GetParam()));
  ASSERT_NE(engine, nullptr);
  const auto outputs = engine->generate(requests(8, 100));
  expect_dialled_text(outputs, 100);
  const RequestStats sum = sum_of(outputs);
  std::printf("%s: drafted %lld, accepted %lld\n", GetParam().c_str(),
              static_cast<long long>(sum.num_draft_tokens),
              static_cast<long long>(sum.num_accepted_tokens));
  if (test::DialledSet::traits(GetParam()).looks_up) return;  // nothing in these prompts repeats
  const double dial = set().acceptance(GetParam(), kDrafts);
  const double acceptance =
      static_cast<double>(sum.num_accepted_tokens) / static_cast<double>(sum.num_draft_tokens);
  EXPECT_NEAR(acceptance, dial, 0.12);
  // Every step after the first drafts all that it may, but for the last ones of a request.
  EXPECT_GE(sum.num_draft_tokens,
            (sum.num_steps - 3 * 8) * test::DialledSet::drafts_of(GetParam(), kDrafts));
}

TEST_P(SpeculationWith, CountsByPositionAddUp) {
  const auto engine = make(config_with(GetParam()));
  ASSERT_NE(engine, nullptr);
  std::vector<Request> all = requests(6, 60);
  all[2].speculative.enabled = false;
  all[3].speculative.num_speculative_tokens = 1;
  const auto outputs = engine->generate(all);
  EXPECT_EQ(outputs[2].stats.num_draft_tokens, 0);
  EXPECT_LE(outputs[3].stats.num_draft_tokens, outputs[3].stats.num_drafts);
  for (const RequestOutput& output : outputs) {
    const RequestStats& stats = output.stats;
    int64_t drafted = 0;
    int64_t accepted = 0;
    for (int i = 0; i < kMaxSpeculativeTokens; ++i) {
      drafted += stats.num_draft_tokens_per_pos[i];
      accepted += stats.num_accepted_tokens_per_pos[i];
      EXPECT_LE(stats.num_accepted_tokens_per_pos[i], stats.num_draft_tokens_per_pos[i]);
    }
    EXPECT_EQ(drafted, stats.num_draft_tokens);
    EXPECT_EQ(accepted, stats.num_accepted_tokens);
    EXPECT_EQ(stats.num_draft_tokens_per_pos[0], stats.num_drafts);
    EXPECT_EQ(stats.num_output_tokens, 60);
    EXPECT_EQ(stats.num_accepted_tokens, 60 - stats.num_steps);
  }
  const EngineStats stats = engine->stats();
  ASSERT_EQ(stats.drafters.size(), 1u);
  EXPECT_EQ(stats.drafters[0].num_draft_tokens, stats.requests.num_draft_tokens);
  EXPECT_EQ(stats.drafters[0].num_output_tokens, stats.requests.num_output_tokens - 60);
}

// The engine thread and the worker do the same with the adaptive policy, which measures first.
TEST_P(SpeculationWith, TheAdaptivePolicyKeepsTheText) {
  EngineConfig adaptive = config_with(GetParam());
  adaptive.speculative[0].length_policy = "adaptive";
  const auto engine = make(adaptive);
  ASSERT_NE(engine, nullptr);
  EXPECT_NE(engine->info().step_times, "");
  expect_dialled_text(engine->generate(requests(8, 60)), 60);
}

INSTANTIATE_TEST_SUITE_P(All, SpeculationWith, testing::ValuesIn(test::DialledSet::kinds()),
                         [](const auto& kind) { return kind.param; });

TEST_F(Speculation, ARequestChoosesItsDrafter) {
  EngineConfig two = config();
  two.speculative = {set().drafter("eagle", 3), set().drafter("draft_model", 2)};
  const auto engine = make(two);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->info().drafter, "eagle, draft_model");
  std::vector<Request> all = requests(6, 50);
  all[1].speculative.method = "draft_model";
  all[3].speculative.method = "draft_model";
  all[4].speculative.method = "eagle";
  all[5].speculative.enabled = false;
  const auto outputs = engine->generate(all);
  expect_dialled_text(outputs, 50);
  const EngineStats stats = engine->stats();
  ASSERT_EQ(stats.drafters.size(), 2u);
  const auto drafted = [&](std::initializer_list<size_t> which) {
    int64_t sum = 0;
    for (const size_t i : which) sum += outputs[i].stats.num_draft_tokens;
    return sum;
  };
  EXPECT_EQ(stats.drafters[0].num_draft_tokens, drafted({0, 2, 4}));
  EXPECT_EQ(stats.drafters[1].num_draft_tokens, drafted({1, 3}));
  EXPECT_GT(stats.drafters[0].num_accepted_tokens, 0);
  EXPECT_GT(stats.drafters[1].num_accepted_tokens, 0);
  EXPECT_EQ(outputs[1].stats.num_draft_tokens_per_pos[2], 0);

  Request unknown = request(0, 5, 5);
  unknown.speculative.method = "mtp";
  const RequestOutput refused = engine->generate({unknown})[0];
  EXPECT_NE(refused.status.message().find("eagle, draft_model"), std::string::npos);
  Request too_many = request(0, 5, 5);
  too_many.speculative.method = "draft_model";
  too_many.speculative.num_speculative_tokens = 3;
  EXPECT_NE(engine->generate({too_many})[0].status.message().find("0 to 2"), std::string::npos);
}

// What requests(8, max_tokens) will emit, and predictions that are off in one way or another.
std::vector<Request> predicted(std::vector<Request> all, const DialledCycle& cycle) {
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t>& ids = all[i].prediction_token_ids;
    const int begin = 37 * static_cast<int>(i) + static_cast<int>(all[i].prompt_token_ids.size());
    for (int t = 0; t < all[i].sampling.max_tokens; ++t) ids.push_back(cycle.at(begin + t));
    if (i == 1) std::reverse(ids.begin(), ids.end());
    if (i == 2) ids.resize(ids.size() / 3);
    if (i == 3) ids.erase(ids.begin() + 20, ids.begin() + 30);
    if (i == 4) ids.insert(ids.begin() + 20, 5, ids.front());
    if (i == 5) ids.clear();
  }
  return all;
}

void expect_predictions_to_be_drafted(const std::vector<RequestOutput>& outputs, int max_tokens) {
  const auto& stats = [&](size_t i) -> const RequestStats& { return outputs[i].stats; };
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LE(stats(i).num_prediction_draft_tokens, stats(i).num_draft_tokens) << i;
    EXPECT_LE(stats(i).num_accepted_prediction_tokens, stats(i).num_prediction_draft_tokens) << i;
  }
  for (const size_t right : {0, 6, 7}) {
    EXPECT_EQ(stats(right).num_accepted_prediction_tokens,
              stats(right).num_prediction_draft_tokens);
    EXPECT_LE(stats(right).num_steps, 2 + max_tokens / (kDrafts + 1));
  }
  // A third of the text, of which each step accepts three tokens and adds the fourth.
  EXPECT_GE(stats(2).num_accepted_prediction_tokens, max_tokens / 4 - 1);
  EXPECT_GT(stats(3).num_accepted_prediction_tokens, max_tokens / 2) << "it goes on behind a gap";
  EXPECT_GT(stats(4).num_accepted_prediction_tokens, max_tokens / 2) << "and behind what is not";
  EXPECT_EQ(stats(5).num_prediction_draft_tokens, 0) << "it has none";
}

TEST_F(Speculation, APredictionIsDraftedAndTheTextStays) {
  const auto engine = make(config_with("ngram"));
  ASSERT_NE(engine, nullptr);
  const auto outputs = engine->generate(predicted(requests(8, 100), cycle()));
  expect_dialled_text(outputs, 100);
  expect_predictions_to_be_drafted(outputs, 100);
  EXPECT_GT(engine->stats().requests.num_accepted_prediction_tokens, 300);
  // Their prompts are in the prefix cache now, and so is what they wrote.
  const auto again = engine->generate(predicted(requests(8, 100), cycle()));
  expect_dialled_text(again, 100);
  expect_predictions_to_be_drafted(again, 100);
}

TEST_F(Speculation, PredictionsSurvivePreemptionAndChoices) {
  EngineConfig small = config_with("ngram");
  small.num_gpu_blocks_override = 30;
  const auto engine = make(small);
  ASSERT_NE(engine, nullptr);
  const auto outputs = engine->generate(predicted(requests(8, 100), cycle()));
  expect_dialled_text(outputs, 100);
  EXPECT_GT(engine->stats().requests.num_preemptions, 0);
  EXPECT_GT(outputs[7].stats.num_accepted_prediction_tokens, 60);

  Request twice = predicted(requests(1, 40), cycle())[0];
  twice.sampling.n = 2;
  twice.sampling.temperature = 0.01f;
  std::map<int, std::vector<int32_t>> choices;
  std::map<int, RequestStats> stats;
  std::promise<void> ended;
  ASSERT_TRUE(engine
                  ->submit(
                      twice,
                      [&](const RequestOutput& output) {
                        auto& ids = choices[output.index];
                        ids.insert(ids.end(), output.token_ids.begin(), output.token_ids.end());
                        stats[output.index] = output.stats;
                        if (output.request_finished) ended.set_value();
                      },
                      nullptr)
                  .ok());
  ended.get_future().wait();
  EXPECT_EQ(choices[0], choices[1]);
  for (const int choice : {0, 1}) EXPECT_GT(stats[choice].num_accepted_prediction_tokens, 25);
}

// A prediction takes the drafter that looks it up, whatever the first one is.
TEST_F(Speculation, APredictionChoosesTheDrafter) {
  EngineConfig two = config();
  two.speculative = {set().drafter("eagle", 3), set().drafter("ngram", 3)};
  const auto engine = make(two);
  ASSERT_NE(engine, nullptr);
  std::vector<Request> all = predicted(requests(8, 60), cycle());
  all[7].speculative.method = "eagle";
  const auto outputs = engine->generate(all);
  expect_dialled_text(outputs, 60);
  EXPECT_GT(outputs[0].stats.num_accepted_prediction_tokens, 40);
  EXPECT_EQ(outputs[7].stats.num_prediction_draft_tokens, 0);
  EXPECT_GT(outputs[7].stats.num_draft_tokens, 0);
}

TEST_F(Speculation, WithoutALookUpAPredictionHasNoEffect) {
  for (const EngineConfig& other : {config(), config_with("eagle")}) {
    const auto engine = make(other);
    ASSERT_NE(engine, nullptr);
    const auto outputs = engine->generate(predicted(requests(4, 30), cycle()));
    expect_dialled_text(outputs, 30);
    EXPECT_EQ(sum_of(outputs).num_prediction_draft_tokens, 0);
  }
}

// Tokens a step with the rule `synthetic`, alone.
double tokens_a_step(EngineImpl& engine, const Request& request) {
  const RequestStats stats = engine.generate({request})[0].stats;
  // The first step gives one token and verifies nothing.
  return static_cast<double>(stats.num_output_tokens - 1) /
         static_cast<double>(stats.num_steps - 1);
}

TEST_F(Speculation, SyntheticRatesDecideHowManyTokensAStepGives) {
  EngineConfig synthetic = config_with("eagle", 3);
  synthetic.max_model_len = 2048;
  synthetic.speculative[0].rejection_sample_method = "synthetic";
  synthetic.speculative[0].synthetic_acceptance_rates = {0.8, 0.5, 0.2};
  const Request long_one = request(0, 5, 2000);
  {
    const auto engine = make(synthetic);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->info().rejection_sample_method, "synthetic");
    EXPECT_NEAR(tokens_a_step(*engine, long_one), 2.5, 0.12);
  }
  synthetic.speculative[0].synthetic_acceptance_rates = {};
  synthetic.speculative[0].synthetic_acceptance_length = 1;
  const auto none = make(synthetic);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(tokens_a_step(*none, request(0, 5, 100)), 1);
  synthetic.speculative[0].synthetic_acceptance_length = 4;
  const auto all = make(synthetic);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(tokens_a_step(*all, request(0, 5, 101)), 4);
}

// By position of the text: what was drafted there.
using Drafts = std::map<int, std::vector<int32_t>>;

// Grants nothing before step `begin`, then `limit` drafts.
Drafts drafts_with_rest(const EngineConfig& config, const Request& request, uint64_t begin) {
  Drafts drafts;
  const TestHooks hooks{.grants =
                            [=](uint64_t step, std::array<DraftGrant, kMaxDrafters>& grants) {
                              if (step < begin)
                                grants[0] = {.num_draft_tokens = 0, .catch_up_rows = 0};
                            },
                        .on_result =
                            [&](uint64_t, const Span& span, const SpanResult& result) {
                              drafts[span.sequence->known_len()].assign(
                                  result.drafts, result.drafts + result.num_drafted);
                            }};
  auto engine = EngineImpl::create(config, hooks);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  if (engine.ok()) (void)engine.value()->generate({request});
  return drafts;
}

class NeverStale : public SpeculationWith {};

// A drafter that rested proposes what one that never did proposes at the same place.
TEST_P(NeverStale, AfterARestTheDraftsAreTheSame) {
  EngineConfig one = config_with(GetParam());
  one.steps_in_flight = 1;
  const Request long_one = request(0, 20, 160);
  const Drafts always = drafts_with_rest(one, long_one, 0);
  const Drafts rested = drafts_with_rest(one, long_one, 100);
  int num_compared = 0;
  for (const auto& [place, drafts] : rested) {
    const auto found = always.find(place);
    if (place < 125 || found == always.end() || drafts.size() != found->second.size()) continue;
    EXPECT_EQ(drafts, found->second) << place;
    if (!drafts.empty()) ++num_compared;
  }
  EXPECT_GT(num_compared, 5);
}

INSTANTIATE_TEST_SUITE_P(All, NeverStale,
                         testing::Values("draft_model", "draft_model_shifted", "eagle", "eagle3",
                                         "mtp", "mtp_chained", "mtp_own"),
                         [](const auto& kind) { return kind.param; });

TEST_F(Speculation, OffKeepsDraftersAtRest) {
  EngineConfig off = config_with("eagle");
  off.speculative[0].length_policy = "off";
  const auto engine = make(off);
  ASSERT_NE(engine, nullptr);
  const auto outputs = engine->generate(requests(3, 20));
  expect_dialled_text(outputs, 20);
  EXPECT_EQ(sum_of(outputs).num_draft_tokens, 0);
}

TEST_F(Speculation, AScheduleFollowsTheBatch) {
  EngineConfig scheduled = config_with("eagle");
  scheduled.speculative[0].length_policy = "adaptive";
  scheduled.speculative[0].num_speculative_tokens_per_batch_size = {{1, 1, 3}, {2, 8, 0}};
  const auto engine = make(scheduled);
  ASSERT_NE(engine, nullptr);
  EXPECT_GT(sum_of(engine->generate(requests(1, 40))).num_draft_tokens, 0);
  const auto together = engine->generate(requests(4, 40));
  expect_dialled_text(together, 40);
  // Only while one of them is left.
  EXPECT_LT(sum_of(together).num_draft_tokens, 3 * 40);
}

}  // namespace
}  // namespace foretoken
