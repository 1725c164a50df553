#include "engine/measure/null_queue.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/dialled_engine.h"
#include "engine/engine_impl.h"
#include "spec/cost_table_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class NullQueueTest : public DialledEngine {
 protected:
  static std::unique_ptr<EngineImpl> make_with(const EngineConfig& config,
                                               const NullQueueConfig& null) {
    TestHooks hooks;
    hooks.wrap_queue = [&](std::unique_ptr<Queue>) { return make_null_queue(null); };
    auto engine = EngineImpl::create(config, hooks);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }
};

// The engine cannot tell it from a device: drafts are granted, verified and accepted, whether a
// step is one graph, several or none.
TEST_F(NullQueueTest, RunsAnEngine) {
  for (const char* mode : {"FULL", "PIECEWISE", "NONE"}) {
    SCOPED_TRACE(mode);
    EngineConfig with = config(4);
    with.cudagraph_mode = mode;
    const auto engine = make_with(with, {.num_accepted = 2, .token_id = 7});
    ASSERT_NE(engine, nullptr);
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(request(10 * i, 20 + 30 * i, 40));
    for (const RequestOutput& output : engine->generate(requests)) {
      ASSERT_TRUE(output.status.ok()) << output.status.message();
      EXPECT_EQ(output.token_ids, std::vector<int32_t>(40, 7));
      EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    }
    const RequestStats stats = engine->stats().requests;
    EXPECT_EQ(stats.num_draft_tokens, 2 * stats.num_accepted_tokens);
  }
}

// The profile's steps take the queue's time, whatever their size, and leave the counter at 0.
TEST_F(NullQueueTest, IsProfiled) {
  const NullQueueConfig null{.step_ns = 200'000, .token_id = 7};
  const test::ScratchFolder folder;
  EngineConfig adaptive = config(3);
  adaptive.speculative[0].length_policy = "adaptive";
  adaptive.step_time_table = folder.file("times.json");
  const auto engine = make_with(adaptive, null);
  ASSERT_NE(engine, nullptr);
  const auto times = read_cost_table(adaptive.step_time_table, std::vector<std::string>{"ngram"});
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_GE(times.value().target.points().size(), 2u);
  for (const TimeCurve::Point& point : times.value().target.points()) {
    EXPECT_GE(point.ns, null.step_ns);
  }
  EXPECT_EQ(engine->generate({request(0, 20, 40)})[0].token_ids, std::vector<int32_t>(40, 7));
}

// The device's clock is the host's, so that a trace shows both side by side.
TEST_F(NullQueueTest, IsTraced) {
  const test::ScratchFolder folder;
  EngineConfig traced = config(0);
  traced.profile = folder.file("trace.json");
  const int64_t begin = now_ns();
  ASSERT_NE(make_with(traced, {.step_ns = 1000})->generate({request(0, 5, 20)})[0].token_ids.size(),
            0u);
  const int64_t elapsed = now_ns() - begin;
  std::ifstream file(traced.profile);
  const nlohmann::json trace = nlohmann::json::parse(file);
  double first = 1e18, last = -1e18;
  int num_steps = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (!event.contains("ts")) continue;
    num_steps += event["name"] == "step" ? 1 : 0;
    first = std::min(first, event["ts"].get<double>());
    last = std::max(last, event["ts"].get<double>());
  }
  EXPECT_GE(num_steps, 19);
  EXPECT_LE((last - first) * 1e3, static_cast<double>(elapsed) + 1e3) << "nanoseconds";
}

// A clock that goes on when somebody looks at it: the host takes no time but for that.
int64_t next_tick() {
  static std::atomic<int64_t> time{1'000'000};
  return time += 1000;
}

// Steps take their time one after the other, so that the device is never idle with two in flight.
TEST_F(NullQueueTest, StepsTakeTime) {
  const auto engine = make_with(config(0), {.step_ns = 2'000'000, .now_ns = next_tick});
  ASSERT_NE(engine, nullptr);
  (void)engine->generate({request(0, 5, 50)});
  const StepTiming timing = engine->stats().timing;
  EXPECT_GE(timing.num_steps, 45);
  EXPECT_EQ(timing.device_ns, timing.num_steps * 2'000'000);
  EXPECT_GE(timing.num_gaps, 40);
  EXPECT_EQ(timing.idle_ns, 0);
  EXPECT_GT(timing.wait_ns, 0);
  EXPECT_GT(timing.plan_ns, 0);
  EXPECT_GT(timing.encode_ns, 0);
  EXPECT_GT(timing.submit_ns, 0);
  EXPECT_GT(timing.reconcile_ns, 0);
}

}  // namespace
}  // namespace foretoken
