#include "engine/parallel/start_engines.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <span>
#include <thread>

#include "engine/parallel/data_parallel_engine.h"
#include "engine/parallel/two_processes.h"

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
    behind_.on_load_progress = [held = let_go_.get_future().share()](int64_t, int64_t) {
      held.wait_for(std::chrono::seconds(20));
    };
    TwoProcesses::SetUp();
  }

  std::promise<void> let_go_;
};

TEST_F(HeldFrontEnds, AnInterruptIsHeededWhileOthersLoad) {
  std::atomic<bool> cancelled = false;
  EngineConfig front = two_engines();
  front.cancel_load = &cancelled;
  const std::jthread interrupt([&cancelled] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    cancelled.store(true);
  });
  EXPECT_EQ(start_engines(front, place(0, port_)).status().code(), StatusCode::kAborted);
  let_go_.set_value();
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
