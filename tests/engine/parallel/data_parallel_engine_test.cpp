#include "engine/parallel/data_parallel_engine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <latch>

#include "engine/dialled_engine.h"
#include "support/hold_processor.h"
#include "support/quiet_engine.h"

namespace foretoken {
namespace {

class DataParallel : public DialledRanks {
 protected:
  static std::unique_ptr<Engine> make_two(int num_draft_tokens) {
    EngineConfig two = config(num_draft_tokens);
    two.parallel.data_parallel_size = 2;
    return make(two);
  }
};

std::vector<int32_t> ids_of(const std::vector<RequestOutput>& outputs) {
  std::vector<int32_t> ids;
  for (const RequestOutput& output : outputs) {
    ids.insert(ids.end(), output.token_ids.begin(), output.token_ids.end());
  }
  return ids;
}

std::vector<Request> sampled(std::vector<Request> requests) {
  for (Request& request : requests) request.sampling.temperature = 1;
  return requests;
}

TEST_F(DataParallel, GivesTheSameIdsAsOneEngine) {
  const auto one = make(config(3));
  const auto two = make_two(3);
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) {
    requests.push_back(request(3 * i, 20 + i, 12));
    requests.back().sampling.n = 1 + i % 2;
  }
  const auto alone = one->generate(requests);
  const auto together = two->generate(requests);
  ASSERT_EQ(alone.size(), together.size());
  EXPECT_EQ(ids_of(alone), ids_of(together));
  // Without a seed of their own, requests have that of their number, on whichever engine.
  EXPECT_EQ(ids_of(one->generate(sampled(requests))), ids_of(two->generate(sampled(requests))));
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].index, together[i].index);
}

TEST_F(DataParallel, BothEnginesWorkAndTheirCountsAddUp) {
  const auto two = make_two(0);
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(request(40 * i % 90, 20, 4));
  two->generate(requests);
  const EngineStats stats = two->stats();
  ASSERT_EQ(stats.engines.size(), 2u);
  EXPECT_EQ(stats.num_finished_requests, 8);
  EXPECT_GT(stats.engines[0].num_finished_requests, 0);
  EXPECT_GT(stats.engines[1].num_finished_requests, 0);
  EXPECT_EQ(stats.requests.num_output_tokens, 32);
  EXPECT_EQ(two->info().num_engines, 2);
  EXPECT_EQ(two->info().num_blocks, stats.num_total_blocks);
}

TEST_F(DataParallel, ARepeatedPromptStaysWithItsPrefix) {
  const auto two = make_two(0);
  for (int i = 0; i < 4; ++i) two->generate({request(0, 48, 2)});
  const EngineStats stats = two->stats();
  const auto& engines = stats.engines;
  EXPECT_EQ(std::max(engines[0].num_finished_requests, engines[1].num_finished_requests), 4);
  EXPECT_GE(stats.requests.num_cached_tokens, 3 * 32);
}

TEST_F(DataParallel, ARequestMayNameItsEngine) {
  const auto two = make_two(0);
  Request named = request(0, 20, 4);
  named.data_parallel_rank = 1;
  const auto outputs = two->generate({named, named, named});
  ASSERT_EQ(outputs.size(), 3u);
  for (const RequestOutput& output : outputs) EXPECT_EQ(output.token_ids, expected(0, 20, 4));
  EXPECT_EQ(two->stats().engines[1].num_finished_requests, 3);
  EXPECT_EQ(two->generate_async(named).get().at(0).token_ids, expected(0, 20, 4));
  EXPECT_EQ(two->stats().engines[1].num_finished_requests, 4);
  named.data_parallel_rank = 2;
  EXPECT_NE(two->submit(
                   named, [](const RequestOutput&) {}, nullptr)
                .message()
                .find("data_parallel_rank 2 is out of range"),
            std::string::npos);
  EXPECT_EQ(two->generate({named}).at(0).finish_reason, FinishReason::kError);
}

TEST_F(DataParallel, AbortsReachTheRightEngine) {
  const auto two = make_two(0);
  std::latch ended(6);
  std::atomic<int> aborted = 0;
  const auto hold = std::make_shared<test::HoldProcessor>();
  for (int i = 0; i < 6; ++i) {
    Request long_one = request(0, 20, 400);
    long_one.request_id = "long-" + std::to_string(i);
    long_one.sampling.ignore_eos = true;
    long_one.sampling.logits_processors = {hold};
    ASSERT_TRUE(two->submit(
                       long_one,
                       [&](const RequestOutput& output) {
                         if (!output.request_finished) return;
                         aborted += output.finish_reason == FinishReason::kAbort;
                         ended.count_down();
                       },
                       nullptr)
                    .ok());
  }
  EXPECT_EQ(two->submit(
                   [] {
                     Request again = request(0, 20, 4);
                     again.request_id = "long-2";
                     return again;
                   }(),
                   [](const RequestOutput&) {}, nullptr)
                .code(),
            StatusCode::kInvalidArgument);
  for (int i = 0; i < 6; ++i) two->abort("long-" + std::to_string(i));
  two->abort("nobody");
  hold->release();
  ended.wait();
  EXPECT_EQ(aborted.load(), 6);
}

TEST_F(DataParallel, OutputsComeOneAtATimeAndMaySubmitButNotWait) {
  const auto two = make_two(0);
  std::atomic<int> inside = 0, most = 0;
  std::latch ended(8);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(two->submit(
                       request(10 * i, 20, 6),
                       [&](const RequestOutput& output) {
                         most = std::max(most.load(), ++inside);
                         if (output.request_finished) {
                           const auto refused = two->generate({request(0, 20, 2)});
                           EXPECT_EQ(refused.front().finish_reason, FinishReason::kError);
                           const Status next = two->submit(
                               request(5, 20, 2),
                               [&](const RequestOutput& last) {
                                 if (last.request_finished) ended.count_down();
                               },
                               nullptr);
                           EXPECT_TRUE(next.ok()) << next.message();
                           ended.count_down();
                         }
                         --inside;
                       },
                       nullptr)
                    .ok());
  }
  ended.wait();
  EXPECT_EQ(most.load(), 1);
}

// An engine that has failed, or answers nothing at all.
class BrokenEngine final : public test::QuietEngine {
 public:
  explicit BrokenEngine(Status status) : status_(std::move(status)) {
    info_.block_size = 16;
    info_.num_blocks = 10;
  }
  Status submit(Request, OutputCallback, std::string*) override {
    ++num_submitted;
    return status_;
  }

  int num_submitted = 0;

 private:
  Status status_;
};

TEST(DataParallelEngine, AFailedEngineGetsNoFurtherRequestsAndTheHealthSaysSo) {
  auto good = std::make_unique<BrokenEngine>(Status());
  auto bad = std::make_unique<BrokenEngine>(Status(StatusCode::kInternal, "the device is gone"));
  BrokenEngine* good_one = good.get();
  BrokenEngine* bad_one = bad.get();
  std::vector<std::unique_ptr<Engine>> engines;
  engines.push_back(std::move(bad));
  engines.push_back(std::move(good));
  DataParallelEngine two(std::move(engines), 0);
  for (int i = 0; i < 6; ++i) {
    Request request;
    request.prompt_token_ids = {1, 2, 3};
    EXPECT_TRUE(two.submit(request, [](const RequestOutput&) {}, nullptr).ok());
  }
  EXPECT_EQ(bad_one->num_submitted, 1);
  EXPECT_EQ(good_one->num_submitted, 6);
  EXPECT_EQ(two.submit(Request(), nullptr, nullptr).message(), "the device is gone");
}

// Each measures for itself; the table that is kept is the first engine's.
TEST_F(DataParallel, EnginesMeasureTogetherAndOneWritesTheTable) {
  const std::string file = folder() + "/times_of_two.json";
  EngineConfig two = config(3);
  two.parallel.data_parallel_size = 2;
  two.speculative[0].length_policy = "adaptive";
  two.step_time_table = file;
  const auto measured = make(two);
  EXPECT_NE(measured->info().step_times, "");
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(make(two)->info().step_times, measured->info().step_times);
  std::filesystem::remove(file);
}

TEST_F(DataParallel, AnEngineThatCannotStartEndsTheStart) {
  EngineConfig two = config(3);
  two.parallel.data_parallel_size = 2;
  two.attention_backend = "none_such";
  std::unique_ptr<Engine> engine;
  EXPECT_NE(make_engine(two, &engine).message().find("none_such"), std::string::npos);
  EXPECT_EQ(engine, nullptr);
  two = config(3);
  two.parallel.data_parallel_size = 2;
  two.speculative[0].length_policy = "adaptive";
  two.step_time_table = folder() + "/no_such_folder/times.json";
  // Only the first engine writes: the other one must not wait for it for ever.
  EXPECT_NE(make_engine(two, &engine).message().find("no_such_folder"), std::string::npos);
}

TEST(DataParallelEngine, AnEngineThatToldNothingOfDraftersAddsNone) {
  EngineStats told;
  told.num_steps = 2;
  told.drafters.resize(1);
  const EngineStats sum = sum_of({told, EngineStats()});
  EXPECT_EQ(sum.num_steps, 2);
  EXPECT_EQ(sum.drafters.size(), 1u);
  EXPECT_EQ(sum.engines.size(), 2u);
}

TEST(DataParallelEngine, DividesTheHost) {
  EngineConfig config;
  config.parallel.data_parallel_size = 2;
  config.parallel.tensor_parallel_size = 4;
  config.parallel.master_port = 29500;
  config.device = "cuda";
  const EngineConfig second = config_of_engine(config, 1);
  EXPECT_EQ(second.device_ordinal, 4);
  EXPECT_EQ(second.parallel.data_parallel_size, 1);
  EXPECT_EQ(second.parallel.tensor_parallel_size, 4);
  EXPECT_EQ(second.parallel.master_port, 29501);
  config.device = "cpu";
  EXPECT_GE(config_of_engine(config, 0).cpu_threads, 1);
  EXPECT_EQ(second.gpu_memory_utilization, config.gpu_memory_utilization);
  EXPECT_EQ(config_of_engine(config, 0).gpu_memory_utilization, config.gpu_memory_utilization / 2);
  config.parallel.data_parallel_size = 4;
  config.parallel.nnodes = 2;
  const EngineConfig here = config_of_host(config, 2, 2);
  EXPECT_EQ(here.parallel.data_parallel_size, 2);
  EXPECT_EQ(here.parallel.nnodes, 1);
  EXPECT_EQ(config_of_engine(here, 1).parallel.data_parallel_start_rank, 3);
}

}  // namespace
}  // namespace foretoken
