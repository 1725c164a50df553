#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files/text_file.h"
#include "device/device_traits.h"
#include "engine/dialled_engine.h"
#include "engine/measure/step_time_cache.h"
#include "spec/cost_table_file.h"
#include "spec/learned_rates_file.h"
#include "support/dialled_set.h"
#include "support/scratch_folder.h"
#include "support/time_curve.h"

// What one engine learns of its drafter the next one begins with.

namespace foretoken {
namespace {

constexpr int kNumTokens = 200;
constexpr int kFirstTokens = 12;  // of a text, before what was known at the start is outdated
constexpr int kNumDrafts = 4;

class WarmStart : public testing::Test {
 protected:
  // Only the first draft of this drafter fits, which an engine has to find out.
  EngineConfig config(const std::string& cache) const {
    const test::DialledSet& set = test::DialledSet::of();
    EngineConfig config;
    config.model = set.target();
    config.device = engine_test_device();
    config.max_model_len = 512;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 64;
    config.num_gpu_blocks_override = 8 * 32;
    config.speculative = {set.drafter("dflash", kNumDrafts)};
    config.speculative[0].length_policy = "adaptive";
    config.step_time_cache = cache.empty() ? cache : folder_.file(cache);
    return config;
  }

  static std::unique_ptr<Engine> make(const EngineConfig& config) {
    std::unique_ptr<Engine> engine;
    const Status status = make_engine(config, &engine);
    EXPECT_TRUE(status.ok()) << status.message();
    return engine;
  }

  std::vector<std::filesystem::path> files(const std::string& folder) const {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    std::filesystem::directory_iterator entry(folder_.file(folder), error);
    if (error) return found;
    for (const auto& each : entry) {
      if (each.is_regular_file()) found.push_back(each.path());
    }
    return found;
  }

  // Measures once, and puts costs there with which lengths follow from chances alone: four drafts
  // pay where most are accepted, one where the first is.
  void make_costs(const std::string& cache, int64_t row_ns = 1'000'000) const {
    make(config(cache));
    ASSERT_EQ(files(cache).size(), 1u);
    const std::string path = files(cache)[0].string();
    Result<CostTable> times = read_cost_table(path, std::vector<std::string>{"dflash"});
    ASSERT_TRUE(times.ok()) << times.status().message();
    times.value().target =
        test::curve({{1, row_ns}, {2, row_ns * 12 / 10}, {64, row_ns * 136 / 10}});
    times.value().verify.clear();
    times.value().context.clear();
    for (TimeCurve* curve :
         {&times.value().drafters[0].catch_up, &times.value().drafters[0].pass}) {
      if (!curve->empty()) *curve = test::curve({{1, 10'000}, {512, 20'000}});
    }
    std::ofstream(path, std::ios::trunc) << cost_table_to_json(times.value());
  }

  static RequestStats stats_of(Engine& engine, int begin, int num_tokens = kNumTokens) {
    const test::DialledSet& set = test::DialledSet::of();
    const DialledCycle cycle(set.shape().vocab_size, set.shape().seed);
    Request request;
    for (int i = 0; i < 20; ++i) request.prompt_token_ids.push_back(cycle.at(begin + i));
    request.sampling.max_tokens = num_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    std::vector<int32_t> expected;
    for (int i = 0; i < num_tokens; ++i) expected.push_back(cycle.at(begin + 20 + i));
    const auto outputs = engine.generate({request});
    EXPECT_TRUE(outputs[0].status.ok()) << outputs[0].status.message();
    EXPECT_EQ(outputs[0].token_ids, expected);
    return outputs[0].stats;
  }
  static void learn(Engine& engine) {
    for (int i = 0; i < 4; ++i) (void)stats_of(engine, 31 * i);
  }

  const test::ScratchFolder folder_;
};

TEST_F(WarmStart, AFreshEngineBeginsWithWhatTheLastOneLearned) {
  make_costs("cold");
  std::filesystem::copy(folder_.file("cold"), folder_.file("own"));
  learn(*make(config("own")));
  ASSERT_EQ(files("own/acceptance").size(), 1u);
  const RequestStats fresh = stats_of(*make(config("own")), 400, kFirstTokens);
  const RequestStats cold = stats_of(*make(config("cold")), 400, kFirstTokens);
  std::printf("drafted: cold %lld, fresh %lld\n", static_cast<long long>(cold.num_draft_tokens),
              static_cast<long long>(fresh.num_draft_tokens));
  EXPECT_GT(fresh.num_draft_tokens, 0);
  EXPECT_LT(fresh.num_draft_tokens, cold.num_draft_tokens) << "there was something to learn";
}

TEST_F(WarmStart, AnEngineThatDoesNotEndKeepsItTooAndWhatItsStepsTook) {
  make_costs("cache", 10'000'000);
  const CostTable times =
      read_cost_table(files("cache")[0].string(), std::vector<std::string>{"dflash"}).value();
  const std::unique_ptr<Engine> engine = make(config("cache"));
  learn(*engine);
  while (files("cache/acceptance").empty()) std::this_thread::yield();
  const auto text = read_text_file(files("cache/acceptance")[0].string());
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto learned = parse_learned_rates(text.value(), "it");
  ASSERT_TRUE(learned.ok()) << learned.status().message();
  EXPECT_GT(learned.value().drafters[0].policy.num_ever, 0);
  EXPECT_GT(learned.value().drafters[0].prior.num_rated, 0);
  EXPECT_EQ(learned.value().step_times, hash_of_times(times));
  ASSERT_FALSE(learned.value().steps.empty());
  for (const CostFeedback::Known& step : learned.value().steps) {
    EXPECT_LT(step.ratio, CostFeedback::kRatioOne) << "no step took as long as the table says";
  }
}

// What a server on a CPU does that finds no table.
TEST_F(WarmStart, ASmallTableIsThereBeforeTheFirstRequest) {
  EngineConfig cold = config("cache");
  cold.measure_when_idle = true;
  const std::unique_ptr<Engine> engine = make(cold);
  if (device_traits(DeviceType::kCpu).name != engine_test_device()) {
    GTEST_SKIP() << "it measures all at start";
  }
  EXPECT_EQ(engine->info().step_times_source, "brief");
  EXPECT_NE(engine->info().step_times.find("target step"), std::string::npos);
  (void)stats_of(*engine, 0);
  while (files("cache").empty()) std::this_thread::yield();
  (void)stats_of(*engine, 50);
}

TEST_F(WarmStart, OnlyWhatWasLearnedIsKept) {
  make_costs("cache");
  (void)make(config("cache"));
  EXPECT_TRUE(files("cache/acceptance").empty()) << "nothing was drafted";
  EngineConfig fixed = config("cache");
  fixed.speculative[0].length_policy = "fixed";
  (void)stats_of(*make(fixed), 0);
  EXPECT_TRUE(files("cache/acceptance").empty()) << "nothing is decided by it";
  EngineConfig unwanted = config("cache");
  unwanted.keep_acceptance_rates = false;
  (void)stats_of(*make(unwanted), 0);
  EXPECT_TRUE(files("cache/acceptance").empty());
  (void)stats_of(*make(config("cache")), 0);
  EXPECT_EQ(files("cache/acceptance").size(), 1u);
  EngineConfig pinned = config("pinned");
  pinned.step_time_table = folder_.file("table.json");
  (void)stats_of(*make(pinned), 0);
  EXPECT_TRUE(files("pinned/acceptance").empty()) << "runs with pinned costs decide alike";
}

TEST_F(WarmStart, ADamagedFileIsNoFaultAndIsReplaced) {
  make_costs("cache");
  (void)stats_of(*make(config("cache")), 0);
  ASSERT_EQ(files("cache/acceptance").size(), 1u);
  const std::filesystem::path file = files("cache/acceptance")[0];
  const auto size = std::filesystem::file_size(file);
  std::ofstream(file, std::ios::trunc) << "{\"format\": 1";
  (void)stats_of(*make(config("cache")), 0);
  EXPECT_GT(std::filesystem::file_size(file), size / 2);
}

}  // namespace
}  // namespace foretoken
