#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>

#include "engine/dialled_engine.h"
#include "support/dialled_set.h"
#include "support/scratch_folder.h"

// Engines that sleep: what came before and comes behind it has the same texts.

namespace foretoken {
namespace {

class Sleep : public DialledEngine {
 protected:
  static std::unique_ptr<Engine> sleeper(EngineConfig wanted) {
    wanted.enable_sleep_mode = true;
    return make(wanted);
  }
  static std::vector<int32_t> ids(Engine& engine, const Request& request) {
    const std::vector<RequestOutput> outputs = engine.generate({request});
    EXPECT_TRUE(outputs[0].status.ok()) << outputs[0].status.message();
    return outputs[0].token_ids;
  }
};

TEST_F(Sleep, RequestsWaitAndNothingIsFoundAgain) {
  const auto engine = sleeper(config(3));
  const Request first = request(0, 40, 16);
  ASSERT_EQ(ids(*engine, first), expected(0, 40, 16));
  EXPECT_GT(engine->generate({first})[0].stats.num_cached_tokens, 0);
  int64_t bytes = -1;
  ASSERT_TRUE(engine->sleep(1, true, &bytes).ok());
  EXPECT_GE(bytes, 0);
  EXPECT_TRUE(engine->is_sleeping());
  EXPECT_EQ(engine->stats().sleep_level, 1);
  auto waiting = engine->generate_async(first);
  Request gone = request(5, 20, 16);
  gone.request_id = "gone";
  auto ended = engine->generate_async(gone);
  engine->abort("gone");
  EXPECT_EQ(ended.get()[0].finish_reason, FinishReason::kAbort);
  EXPECT_NE(waiting.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  ASSERT_TRUE(engine->wake_up().ok());
  const std::vector<RequestOutput> behind = waiting.get();
  EXPECT_FALSE(engine->is_sleeping());
  EXPECT_EQ(behind[0].token_ids, expected(0, 40, 16));
  EXPECT_EQ(behind[0].stats.num_cached_tokens, 0);
  EXPECT_EQ(ids(*engine, request(7, 30, 12)), expected(7, 30, 12));
}

TEST_F(Sleep, WakesInPartsAndFallsFromOneLevelToTheOther) {
  const auto engine = sleeper(config(0));
  ASSERT_TRUE(engine->wake_up().ok());
  ASSERT_TRUE(engine->sleep(1).ok());
  ASSERT_TRUE(engine->wake_up({"weights"}).ok());
  EXPECT_TRUE(engine->is_sleeping());
  ASSERT_TRUE(engine->sleep(2).ok());
  ASSERT_TRUE(engine->sleep(1).ok());
  EXPECT_EQ(engine->stats().sleep_level, 2);
  EXPECT_EQ(engine->wake_up({"draft"}).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(engine->wake_up({"kv_cache"}).ok());
  EXPECT_TRUE(engine->is_sleeping());
  ASSERT_TRUE(engine->wake_up({"kv_cache", "weights"}).ok());
  EXPECT_FALSE(engine->is_sleeping());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
  EXPECT_EQ(engine->sleep(3).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(engine->is_sleeping());
}

TEST_F(Sleep, RunningRequestsEndOrAreWaitedFor) {
  const auto engine = sleeper(config(0));
  auto ended = engine->generate_async(request(0, 40, 60));
  ASSERT_TRUE(engine->sleep(1, true).ok());
  const RequestOutput output = ended.get()[0];
  EXPECT_TRUE(output.finish_reason == FinishReason::kAbort ||
              output.token_ids == expected(0, 40, 60));
  ASSERT_TRUE(engine->wake_up().ok());
  auto finished = engine->generate_async(request(3, 40, 20));
  ASSERT_TRUE(engine->sleep(1, false).ok());
  EXPECT_EQ(finished.get()[0].token_ids, expected(3, 40, 20));
}

TEST_F(Sleep, EndsWithItsEngine) {
  auto engine = sleeper(config(3));
  ASSERT_TRUE(engine->sleep(2).ok());
  auto waiting = engine->generate_async(request(0, 40, 8));
  engine.reset();
  EXPECT_EQ(waiting.get()[0].finish_reason, FinishReason::kAbort);
}

TEST_F(Sleep, NeedsItsFlag) {
  const auto engine = make(config(0));
  EXPECT_EQ(engine->sleep().code(), StatusCode::kUnsupported);
  EXPECT_EQ(engine->wake_up().code(), StatusCode::kUnsupported);
  EXPECT_FALSE(engine->is_sleeping());
}

// Weights that are read again are those of the files as they are then.
TEST_F(Sleep, FilesThatAreGoneKeepItAsleep) {
  namespace fs = std::filesystem;
  const test::ScratchFolder copy;
  const fs::path model = fs::path(copy.path()) / "model", away = fs::path(copy.path()) / "away";
  fs::copy(folder(), model);
  EngineConfig wanted = config(0);
  wanted.model = model.string();
  const auto engine = sleeper(wanted);
  ASSERT_TRUE(engine->sleep(2).ok());
  fs::rename(model, away);
  EXPECT_FALSE(engine->wake_up().ok());
  EXPECT_TRUE(engine->is_sleeping());
  fs::rename(away, model);
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
}

TEST_F(Sleep, SeveralEnginesSleepTogether) {
  EngineConfig wanted = config(0);
  wanted.parallel.data_parallel_size = 2;
  wanted.cpu_threads = 1;
  if (engine_test_device() != "cpu") GTEST_SKIP() << "each engine needs a device of its own";
  const auto engine = sleeper(wanted);
  ASSERT_TRUE(engine->sleep(2).ok());
  for (const EngineStats& each : engine->stats().engines) EXPECT_EQ(each.sleep_level, 2);
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_FALSE(engine->is_sleeping());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ids(*engine, request(i, 40, 9)), expected(i, 40, 9));
}

class SleepWith : public testing::TestWithParam<const char*> {};

// Twice at each level, with drafts behind it as before.
TEST_P(SleepWith, TextsAreTheSame) {
  const test::DialledSet& set = test::DialledSet::of();
  const DialledCycle cycle(set.shape().vocab_size, set.shape().seed);
  EngineConfig config;
  config.model = set.target(GetParam());
  config.device = engine_test_device();
  config.max_model_len = 256;
  config.max_num_seqs = 4;
  config.max_num_batched_tokens = 64;
  config.num_gpu_blocks_override = 64;
  config.enable_sleep_mode = true;
  config.speculative = {set.drafter(GetParam(), 3)};
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  Request request;
  for (int i = 0; i < 40; ++i) request.prompt_token_ids.push_back(cycle.at(i));
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 40;
  request.sampling.ignore_eos = true;
  const RequestOutput before = engine->generate({request})[0];
  for (const int level : {1, 1, 2, 2, 1}) {
    ASSERT_TRUE(engine->sleep(level).ok());
    const Status woken = engine->wake_up();
    ASSERT_TRUE(woken.ok()) << woken.message();
    const RequestOutput after = engine->generate({request})[0];
    EXPECT_EQ(after.token_ids, before.token_ids) << level;
    EXPECT_EQ(after.stats.num_accepted_tokens, before.stats.num_accepted_tokens) << level;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, SleepWith, testing::Values("suffix", "eagle3", "draft_model"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace foretoken
