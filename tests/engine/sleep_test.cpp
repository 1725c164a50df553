#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "device/resident_memory.h"
#include "engine/dialled_engine.h"
#include "engine/parallel/data_parallel_engine.h"
#include "engine/rank_engine.h"
#include "group/local_link.h"
#include "support/dialled_set.h"
#include "support/hold_processor.h"
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

TEST_F(Sleep, FilesOfOtherWeightsAreWhatItWakesUpWith) {
  const test::ScratchFolder copy;
  std::filesystem::copy(folder(), copy.path(), std::filesystem::copy_options::recursive);
  EngineConfig wanted = config(3);
  wanted.model = copy.path();
  const auto engine = sleeper(wanted);
  ASSERT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
  DialledShape other;
  other.seed = 9;
  ASSERT_TRUE(write_dialled_checkpoint(copy.path(), other).ok());
  ASSERT_TRUE(engine->sleep(1).ok());
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
  ASSERT_TRUE(engine->sleep(2).ok());
  ASSERT_TRUE(engine->wake_up().ok());
  const DialledCycle changed(other.vocab_size, other.seed);
  Request behind = request(0, 1, 16);
  for (int i = 0; i < 40; ++i) behind.prompt_token_ids.push_back(changed.at(i));
  std::vector<int32_t> follows;
  for (int i = 40; i < 56; ++i) follows.push_back(changed.at(i));
  EXPECT_EQ(ids(*engine, behind), follows);
}

TEST_F(Sleep, FilesOfOtherShapesKeepItAsleep) {
  const test::ScratchFolder copy;
  std::filesystem::copy(folder(), copy.path(), std::filesystem::copy_options::recursive);
  EngineConfig wanted = config(0);
  wanted.model = copy.path();
  const auto engine = sleeper(wanted);
  ASSERT_TRUE(engine->sleep(2).ok());
  DialledShape other;
  other.intermediate_size *= 2;
  ASSERT_TRUE(write_dialled_checkpoint(copy.path(), other).ok());
  EXPECT_EQ(engine->wake_up().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(engine->is_sleeping());
  ASSERT_TRUE(write_dialled_checkpoint(copy.path(), DialledShape()).ok());
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
}

// Of the same shapes: their layers would go by the former rules.
TEST_F(Sleep, FilesOfAnotherConfigurationKeepItAsleep) {
  const test::ScratchFolder copy;
  std::filesystem::copy(folder(), copy.path(), std::filesystem::copy_options::recursive);
  EngineConfig wanted = config(0);
  wanted.model = copy.path();
  const auto engine = sleeper(wanted);
  ASSERT_TRUE(engine->sleep(2).ok());
  std::ifstream file(copy.file("config.json"));
  const std::string former{std::istreambuf_iterator<char>(file), {}};
  copy.write("config.json", former.substr(0, former.rfind('}')) + ", \"rms_norm_eps\": 0.5}");
  const Status refused = engine->wake_up();
  EXPECT_NE(refused.message().find("config.json is another than at the start"), std::string::npos)
      << refused.message();
  EXPECT_TRUE(engine->is_sleeping());
  copy.write("config.json", former);
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
}

// The target is read by then, and its memory is given back again.
TEST_F(Sleep, AFailedWakingKeepsNoMemory) {
  namespace fs = std::filesystem;
  if (engine_test_device() != "cpu") GTEST_SKIP() << "looks at the memory of the process";
  const test::ScratchFolder copy;
  const fs::path head = fs::path(copy.path()) / "head", away = fs::path(copy.path()) / "away";
  fs::copy(bundled_model_folder() + "-eagle3", head);
  EngineConfig wanted = config(0);
  wanted.model = bundled_model_folder();
  wanted.dtype = "float32";
  SpeculativeConfig& drafter = wanted.speculative.emplace_back();
  drafter.method = "eagle3";
  drafter.model = head.string();
  drafter.num_speculative_tokens = 3;
  const auto engine = sleeper(wanted);
  ASSERT_TRUE(engine->sleep(2).ok());
  fs::rename(head, away);
  const int64_t before = resident_bytes();
  EXPECT_FALSE(engine->wake_up().ok());
  EXPECT_LT(resident_bytes() - before, int64_t{10} << 20);  // of 27 MB
  fs::rename(away, head);
  EXPECT_TRUE(engine->wake_up().ok());
}

// Those who wait for requests hear that it goes on; one that ends requests does so for all.
TEST_F(Sleep, AWaitForRequestsCanBeGivenUp) {
  EngineConfig wanted = config(0);
  wanted.max_processor_rows = 1;
  const auto engine = sleeper(wanted);
  const auto held = [&](const std::shared_ptr<test::HoldProcessor>& hold) {
    Request request = this->request(0, 40, 20);
    request.sampling.logits_processors = {hold};
    return engine->generate_async(request);
  };
  const auto wait_with = [&](const std::stop_token& recall) {
    return std::async(std::launch::async,
                      [&, recall] { return engine->sleep(1, false, nullptr, recall).code(); });
  };
  const auto hold = std::make_shared<test::HoldProcessor>();
  auto runs = held(hold);
  std::stop_source recall;
  auto waits = wait_with(recall.get_token());
  recall.request_stop();
  EXPECT_EQ(waits.get(), StatusCode::kAborted);
  waits = wait_with({});
  while (waits.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    ASSERT_TRUE(engine->wake_up().ok());
  }
  EXPECT_EQ(waits.get(), StatusCode::kAborted);
  EXPECT_FALSE(engine->is_sleeping());
  waits = wait_with({});
  auto ends = std::async(std::launch::async, [&] { return engine->sleep(1, true).code(); });
  hold->release();
  EXPECT_EQ(waits.get(), StatusCode::kOk);
  EXPECT_EQ(ends.get(), StatusCode::kOk);
  EXPECT_TRUE(engine->is_sleeping());
  ASSERT_TRUE(engine->wake_up().ok());
  EXPECT_EQ(ids(*engine, request(0, 40, 16)), expected(0, 40, 16));
}

// It does not wait for those that the engine finishes first.
TEST_F(Sleep, ARequestThatComesBeforeItSleepsMayEndAtOnce) {
  EngineConfig wanted = config(0);
  wanted.max_model_len = 4000;
  const auto engine = sleeper(wanted);
  auto runs = engine->generate_async(request(0, 40, 3500));
  auto waits = std::async(std::launch::async, [&] { return engine->sleep(1, false).code(); });
  Request late = request(5, 20, 8);
  late.request_id = "late";
  auto gone = engine->generate_async(late);
  engine->abort("late");
  (void)gone.get();
  EXPECT_NE(runs.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(waits.get(), StatusCode::kOk);
  EXPECT_EQ(runs.get()[0].token_ids.size(), 3500u);
}

class SleepOfEngines : public Sleep {
 protected:
  void SetUp() override {
    if (engine_test_device() != "cpu") GTEST_SKIP() << "each engine needs a device of its own";
    std::filesystem::copy(folder(), second(), std::filesystem::copy_options::recursive);
  }
  std::string second() const { return copy_.file("model"); }
  std::string weights() const { return second() + "/model.safetensors"; }

  const test::ScratchFolder copy_;
};

// The first one is awake by then, and sleeps again.
TEST_F(SleepOfEngines, AllWakeUpOrNone) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (const std::string& model : {folder(), second()}) {
    EngineConfig wanted = config(0);
    wanted.model = model;
    wanted.cpu_threads = 1;
    engines.push_back(sleeper(wanted));
  }
  DataParallelEngine both(std::move(engines), 0);
  ASSERT_TRUE(both.sleep(2, true, nullptr, {}).ok());
  std::filesystem::rename(weights(), weights() + ".away");
  const Status failed = both.wake_up({});
  EXPECT_EQ(failed.message().find("engine 1: "), 0u) << failed.message();
  for (const EngineStats& each : both.stats().engines) EXPECT_EQ(each.sleep_level, 2);
  std::filesystem::rename(weights() + ".away", weights());
  ASSERT_TRUE(both.wake_up({}).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ids(both, request(i, 40, 9)), expected(i, 40, 9));
}

// Two ranks, of which the second reads its weights elsewhere.
class SleepOfRanks : public SleepOfEngines {
 protected:
  void SetUp() override {
    SleepOfEngines::SetUp();
    if (IsSkipped()) return;
    EngineConfig two = config(3);
    two.cpu_threads = 1;
    two.enable_sleep_mode = true;
    two.parallel.tensor_parallel_size = 2;
    auto links = group::make_local_links(2);
    plans_ = links[0][1].get();
    other_ = std::thread([this, own = two, mine = std::move(links[1])]() mutable {
      own.model = second();
      ran_ = run_rank(own, {}, std::move(mine));
    });
    const Status made = make_rank_engine(two, std::move(links[0]), nullptr, &engine_);
    ASSERT_TRUE(made.ok()) << made.message();
  }
  void TearDown() override {
    engine_.reset();
    if (other_.joinable()) other_.join();
  }

  std::unique_ptr<Engine> engine_;
  group::RankLink* plans_ = nullptr;
  Status ran_;

 private:
  std::thread other_;
};

TEST_F(SleepOfRanks, ARankThatCannotWakeUpIsTold) {
  ASSERT_TRUE(engine_->sleep(2).ok());
  std::filesystem::rename(weights(), weights() + ".away");
  for (int turn = 0; turn < 2; ++turn) {
    const Status failed = engine_->wake_up();
    EXPECT_EQ(failed.message().find("rank 1: "), 0u) << failed.message();
    EXPECT_EQ(engine_->stats().sleep_level, 2);
  }
  std::filesystem::rename(weights() + ".away", weights());
  ASSERT_TRUE(engine_->wake_up().ok());
  EXPECT_EQ(ids(*engine_, request(0, 40, 16)), expected(0, 40, 16));
  ASSERT_TRUE(engine_->sleep(1).ok());
  ASSERT_TRUE(engine_->wake_up({"kv_cache"}).ok());
  ASSERT_TRUE(engine_->wake_up({"weights"}).ok());
  EXPECT_EQ(ids(*engine_, request(7, 40, 16)), expected(7, 40, 16));
}

TEST_F(SleepOfRanks, ARankThatDiesMeanwhileEndsWhoWaits) {
  ASSERT_TRUE(engine_->sleep(1).ok());
  auto waits = engine_->generate_async(request(0, 40, 16));
  plans_->abort({StatusCode::kInternal, "rank 1 fell over"});
  ASSERT_EQ(waits.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  const Status ended = waits.get()[0].status;
  EXPECT_NE(ended.message().find("rank 1 fell over"), std::string::npos) << ended.message();
  EXPECT_NE(engine_->wake_up().message().find("rank 1 fell over"), std::string::npos);
  EXPECT_NE(engine_->sleep(2).message().find("rank 1 fell over"), std::string::npos);
  EXPECT_FALSE(engine_->generate({request(0, 3, 3)})[0].status.ok());
  EXPECT_FALSE(engine_->submit(Request(), nullptr).ok());
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
