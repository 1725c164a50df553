#include "engine/parallel/start_engines.h"

#include <atomic>
#include <cmath>
#include <span>
#include <thread>

#include "engine/parallel/data_parallel_engine.h"
#include "engine/parallel/two_processes.h"
#include "engine/start/host_flags.h"
#include "support/gate.h"

namespace foretoken {
namespace {

using FrontEnds = TwoProcesses;

// Forbids all but one token.
class Only final : public LogitsProcessor {
 public:
  void apply(const LogitsContext&, std::span<float> logits) const override {
    for (float& logit : logits) logit = -INFINITY;
    logits[17] = 0;
  }
};

TEST_F(FrontEnds, OneEngineOfTwoProcessesGivesTheIdsOfOne) {
  Result<StartedEngines> started = start_engines(two_engines(), place(0, port_));
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_EQ(started.value().num_here, 1);
  {
    DataParallelEngine both(std::move(started.value().engines), 0, 1);
    EXPECT_EQ(both.info().num_engines, 2);
    std::vector<Request> requests;
    for (int i = 0; i < 8; ++i) requests.push_back(request(3 * i, 20 + i, 12));
    const auto outputs = both.generate(requests);
    ASSERT_EQ(outputs.size(), 8u);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(outputs[static_cast<size_t>(i)].token_ids, expected(3 * i, 20 + i, 12)) << i;
    }
    const EngineStats stats = both.stats();
    ASSERT_EQ(stats.engines.size(), 2u);
    EXPECT_GT(stats.engines[0].num_finished_requests, 0);
    EXPECT_GT(stats.engines[1].num_finished_requests, 0);
    // Processors run here, however many requests have them.
    for (Request& request : requests) {
      request.sampling.logits_processors = {std::make_shared<Only>()};
    }
    for (const RequestOutput& output : both.generate(requests)) {
      EXPECT_EQ(output.token_ids, std::vector<int32_t>(12, 17));
    }
    EXPECT_EQ(both.stats().engines[1].num_finished_requests,
              stats.engines[1].num_finished_requests);
  }
  TearDown();
  EXPECT_TRUE(ran_.ok()) << ran_.message();
}

class NamedFrontEnds : public NamedHosts {
 protected:
  // Requests for `both`, as many as there are engines and more.
  void expect_ids_of_one(Engine& all) {
    std::vector<Request> requests;
    for (int i = 0; i < 9; ++i) requests.push_back(request(3 * i, 20 + i, 12));
    const auto outputs = all.generate(requests);
    ASSERT_EQ(outputs.size(), 9u);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(outputs[static_cast<size_t>(i)].token_ids, expected(3 * i, 20 + i, 12)) << i;
    }
    const EngineStats stats = all.stats();
    ASSERT_EQ(stats.engines.size(), static_cast<size_t>(num_engines_));
    for (const EngineStats& each : stats.engines) EXPECT_GT(each.num_finished_requests, 0);
  }
};

TEST_F(NamedFrontEnds, HostsMayHaveUnequallyManyEngines) {
  run_behind(1, 2);
  Result<StartedEngines> started = start_engines(host(0, 1, false), no_variables());
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_EQ(started.value().num_here, 1);
  EXPECT_EQ(started.value().texts, nullptr);
  EXPECT_EQ(started.value().engines.back()->info().first_engine, 2);
  DataParallelEngine all(std::move(started.value().engines), 0, 1);
  EXPECT_EQ(all.info().first_engine, 0);
  expect_ids_of_one(all);
}

TEST_F(NamedFrontEnds, AllEnginesMayBeElsewhere) {
  run_behind(0, 2);
  run_behind(2, 1);
  Result<StartedEngines> started = start_engines(host(0, 0, false), no_variables());
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_EQ(started.value().num_here, 0);
  ASSERT_NE(started.value().texts, nullptr);
  DataParallelEngine all(std::move(started.value().engines), 0, 0,
                         std::move(started.value().texts));
  expect_ids_of_one(all);
  Request processed = request(0, 20, 4);
  processed.sampling.logits_processors = {std::make_shared<Only>()};
  const auto refused = all.generate({processed});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].status.message().find("--data-parallel-size-local 0"), std::string::npos)
      << refused[0].status.message();
  EXPECT_FALSE(all.submit(processed, [](const RequestOutput&) {}, nullptr).ok());
}

TEST_F(NamedFrontEnds, OneEngineElsewhereIsEnough) {
  num_engines_ = 1;
  run_behind(0, 1);
  Result<StartedEngines> started = start_engines(host(0, 0, false), no_variables());
  ASSERT_TRUE(started.ok()) << started.status().message();
  DataParallelEngine all(std::move(started.value().engines), 0, 0,
                         std::move(started.value().texts));
  expect_ids_of_one(all);
}

// It has nothing to do with others, and asks no launcher.
TEST_F(NamedFrontEnds, AServerOfItsOwnNeedsNobody) {
  EngineConfig own = config(3);
  own.cpu_threads = 1;
  own.parallel.data_parallel_size = 4;
  own.parallel.data_parallel_size_local = own.parallel.data_parallel_start_rank = 2;
  own.parallel.data_parallel_hybrid_lb = true;
  own.parallel = with_hosts(own.parallel).value();
  num_engines_ = 2;
  const auto slurm = [](const char* name) -> const char* {
    if (std::string_view(name) == "SLURM_PROCID") return "1";
    return std::string_view(name) == "SLURM_STEP_NUM_TASKS" ? "2" : nullptr;
  };
  Result<StartedEngines> started = start_engines(own, slurm);
  ASSERT_TRUE(started.ok()) << started.status().message();
  DataParallelEngine both(std::move(started.value().engines), 0);
  EXPECT_EQ(both.info().num_engines, 2);
  EXPECT_EQ(both.info().first_engine, 2);
  expect_ids_of_one(both);
}

// Its second engine has no model.
class LoneFrontEnds : public FrontEnds {
 protected:
  void SetUp() override {
    behind_.model = "/nowhere/model";
    FrontEnds::SetUp();
  }
};

TEST_F(LoneFrontEnds, AnEngineThatDoesNotStartEndsBoth) {
  // The first word of why is the other one's.
  const auto started = start_engines(two_engines(), place(0, port_));
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.status().message().find("/nowhere/model"), std::string::npos)
      << started.status().message();
}

TEST_F(FrontEnds, AnEngineAtTheFrontThatDoesNotStartEndsBoth) {
  EngineConfig front = two_engines();
  front.profile = "/nowhere/steps.json";
  EXPECT_FALSE(start_engines(front, place(0, port_)).ok());
  TearDown();
  EXPECT_NE(ran_.message().find("/nowhere/steps.json"), std::string::npos) << ran_.message();
}

// The second engine loads until it is let go.
class HeldFrontEnds : public TwoProcesses {
 protected:
  void SetUp() override {
    behind_.on_load_progress = [this](int64_t, int64_t) {
      loads_.open();
      (void)let_go_.wait();
    };
    TwoProcesses::SetUp();
  }

  test::Gate loads_;
  test::Gate let_go_;
};

TEST_F(HeldFrontEnds, AnInterruptIsHeededWhileOthersLoad) {
  std::atomic<bool> cancelled = false;
  EngineConfig front = two_engines();
  front.cancel_load = &cancelled;
  test::Gate loaded;
  front.on_load_progress = [&loaded](int64_t done, int64_t total) {
    if (done == total) loaded.open();
  };
  const std::jthread interrupt([&] {
    EXPECT_TRUE(loads_.wait() && loaded.wait());
    cancelled.store(true);
  });
  EXPECT_EQ(start_engines(front, place(0, port_)).status().code(), StatusCode::kAborted);
  let_go_.open();
  TearDown();
  EXPECT_TRUE(ran_.ok()) << ran_.message();
}

TEST_F(FrontEnds, AProcessBehindTakesNoRequests) {
  const auto refused = start_engines(two_engines(), place(1, port_));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("rank 1"), std::string::npos);
  std::vector<std::unique_ptr<Engine>> none(2);
  end_together(none);
  EXPECT_TRUE(start_engines(two_engines(), place(0, port_)).ok());
}

}  // namespace
}  // namespace foretoken
