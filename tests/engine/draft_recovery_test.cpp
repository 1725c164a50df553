#include "draft/registry.h"
#include "engine/dialled_engine.h"
#include "engine/engine_impl.h"
#include "spec/cost_table.h"
#include "spec/cost_table_file.h"
#include "support/dialled_set.h"
#include "support/scratch_folder.h"
#include "support/time_curve.h"

// The adaptive policy where text is bad first, and good later in requests too short for a probe of
// their own.

namespace foretoken {
namespace {

constexpr int kRecoveredDrafts = 3;
constexpr int kBadRequests = 60;
constexpr int kGoodRequests = 200;
constexpr int kOutput = 40;  // less than spec::RateConstants::kProbeTokens

using test::curve;

struct Case {
  std::string kind;
  int batch;
  int steps_in_flight = 2;
};

class DraftRecovery : public testing::TestWithParam<Case> {
 protected:
  static const test::DialledSet& set() { return test::DialledSet::of(); }

  // Rows cost time, so that bad drafts do not pay; good ones do, prompts to catch up included.
  static void write_times(const std::string& kind, const std::string& path) {
    CostTable times;
    times.target = curve({{1, 1000000}, {4, 1150000}, {16, 1750000}, {64, 4150000}});
    const std::string method = set().drafter(kind, kRecoveredDrafts).method;
    const DrafterTraits traits = declared_traits(method);
    times.drafters = {{.name = method,
                       .one_pass = traits.one_pass,
                       .catch_up = traits.has_kv ? curve({{1, 50000}, {64, 400000}}) : TimeCurve(),
                       .pass = curve({{1, 50000}, {64, 200000}})}};
    EXPECT_TRUE(write_cost_table(times, path).ok());
  }
  static EngineConfig config(const Case& one, const std::string& times) {
    EngineConfig config;
    config.model = set().target(one.kind);
    config.device = engine_test_device();
    config.max_model_len = 256;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 128;
    config.num_gpu_blocks_override = 8 * 16;
    config.steps_in_flight = one.steps_in_flight;
    config.speculative = {set().drafter(one.kind, kRecoveredDrafts)};
    config.speculative[0].length_policy = "adaptive";
    config.step_time_table = times;
    return config;
  }
  // The prompt is a piece of the cycle and its first ids again, so that n-gram finds the rest.
  static Request request(int index, bool good) {
    const DialledCycle cycle(set().shape().vocab_size, set().shape().seed);
    Request request;
    for (int i = 0; i < kOutput + 8; ++i) {
      request.prompt_token_ids.push_back(cycle.at(29 * index + i));
    }
    for (int i = 0; i < 4; ++i) request.prompt_token_ids.push_back(cycle.at(29 * index + i));
    request.sampling.max_tokens = kOutput;
    request.sampling.temperature = good ? 0 : 1000;
    request.sampling.seed = index;
    request.sampling.ignore_eos = true;
    return request;
  }
  // Drafts and accepted drafts of each request, in order.
  static std::vector<std::pair<int64_t, int64_t>> run(Engine& engine, int batch) {
    std::vector<std::pair<int64_t, int64_t>> counts;
    for (int begin = 0; begin < kBadRequests + kGoodRequests; begin += batch) {
      std::vector<Request> requests;
      for (int i = begin; i < begin + batch; ++i) requests.push_back(request(i, i >= kBadRequests));
      for (const RequestOutput& output : engine.generate(std::move(requests))) {
        EXPECT_TRUE(output.status.ok()) << output.status.message();
        counts.emplace_back(output.stats.num_draft_tokens, output.stats.num_accepted_tokens);
      }
    }
    return counts;
  }
};

TEST_P(DraftRecovery, DraftsComeBackWithGoodText) {
  const test::ScratchFolder folder;
  const std::string times = folder.file("times.json");
  write_times(GetParam().kind, times);
  auto engine = EngineImpl::create(config(GetParam(), times), {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const auto counts = run(*engine.value(), GetParam().batch);
  int64_t bad = 0, good = 0;
  for (int i = 0; i < 20; ++i) bad += counts[static_cast<size_t>(kBadRequests - 1 - i)].first;
  for (size_t i = counts.size() - 20; i < counts.size(); ++i) good += counts[i].second;
  size_t first = kBadRequests;
  while (first < counts.size() && counts[first].second < kOutput / 3) ++first;
  std::cout << GetParam().kind << ": drafts of the last bad requests " << bad
            << ", accepted ones of the last good requests " << good << " of " << 20 * kOutput
            << " tokens, back after " << first - kBadRequests << " requests\n";
  EXPECT_LT(bad, 20 * kOutput / 20) << "it did not rest";
  EXPECT_GT(good, 20 * kOutput / 3) << "it did not come back";
  if (GetParam().batch == 1) {
    Case other = GetParam();
    other.steps_in_flight = 1;
    auto again = EngineImpl::create(config(other, times), {});
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(run(*again.value(), 1), counts) << "one step in flight";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& kind : test::DialledSet::kinds()) {
    all.push_back({kind, 4});
    if (kind == "ngram" || kind == "draft_model" || kind == "eagle") all.push_back({kind, 1});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, DraftRecovery, testing::ValuesIn(cases()), [](const auto& one) {
  return one.param.kind + "_" + std::to_string(one.param.batch);
});

}  // namespace
}  // namespace foretoken
