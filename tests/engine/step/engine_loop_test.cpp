#include "engine/step/engine_loop.h"

#include <atomic>
#include <map>
#include <system_error>

#include "base/clock.h"
#include "base/result.h"
#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "engine/request/output_processor.h"
#include "support/gate.h"
#include "support/no_threads.h"

namespace foretoken {
namespace {

// Passes everything on, but reports a broken device from the n-th wait on.
class BreakingQueue final : public Queue {
 public:
  BreakingQueue(Queue& real, int waits_until_broken)
      : real_(real), waits_left_(waits_until_broken) {}

  void launch_op(uint16_t op, const void* args, size_t bytes) override {
    real_.launch_op(op, args, bytes);
  }
  void copy(void* dst, const void* src, size_t bytes) override { real_.copy(dst, src, bytes); }
  void fill(void* dst, int value, size_t bytes) override { real_.fill(dst, value, bytes); }
  void call_host(void (*function)(void*), void* context) override {
    real_.call_host(function, context);
  }
  void record(Event event, uint64_t value) override { real_.record(event, value); }
  void begin_capture() override { real_.begin_capture(); }
  std::unique_ptr<Graph> end_capture() override { return real_.end_capture(); }
  void replay(Graph& graph) override { real_.replay(graph); }
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override {
    // A slow step first: the loop must look again instead of giving up.
    if (waits_left_ % 2 == 1 && !timed_out_) {
      timed_out_ = true;
      return aborted("not yet");
    }
    timed_out_ = false;
    if (waits_left_-- <= 0) return internal_error("device queue: broken");
    return real_.wait(event, value, timeout);
  }
  Status drain() override { return real_.drain(); }

 private:
  Queue& real_;
  int waits_left_;
  bool timed_out_ = false;
};

// Never reaches a step from `first_lost` on.
class HangingQueue final : public test::CountingQueue {
 public:
  HangingQueue(Queue& real, uint64_t first_lost) : CountingQueue(real), first_lost_(first_lost) {}
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override {
    if (value < first_lost_) return CountingQueue::wait(event, value, test::kPatience);
    std::this_thread::sleep_for(timeout);
    return aborted("not yet");
  }

 private:
  const uint64_t first_lost_;
};

// After `last_free` steps the engine thread stands still until the gate opens.
class GatedQueue final : public test::CountingQueue {
 public:
  GatedQueue(Queue& real, uint64_t last_free) : CountingQueue(real), last_free_(last_free) {}
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override {
    if (value > last_free_) {
      reached.open();
      (void)gate.wait();
    }
    return CountingQueue::wait(event, value, timeout);
  }

  test::Gate reached;
  test::Gate gate;

 private:
  const uint64_t last_free_;
};

class EngineLoopTest : public DialledEngine {
 protected:
  void start(int waits_until_broken, int steps_in_flight) {
    auto parts = EngineParts::make(folder(), 3);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(parts).value();
    start_on(std::make_unique<BreakingQueue>(*parts_->queue, waits_until_broken), steps_in_flight);
  }
  void start_hanging(uint64_t first_lost, std::chrono::milliseconds step_timeout) {
    auto parts = EngineParts::make(folder(), 3);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(parts).value();
    start_on(std::make_unique<HangingQueue>(*parts_->queue, first_lost), 2, step_timeout);
  }
  void start_gated(uint64_t last_free) {
    auto parts = EngineParts::make(folder(), 3);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(parts).value();
    auto gated = std::make_unique<GatedQueue>(*parts_->queue, last_free);
    gated_ = gated.get();
    start_on(std::move(gated), 2);
  }
  // It plans as late as PlanTimer says.
  void start_awaiting() {
    auto parts = EngineParts::make(folder(), 3);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(parts).value();
    awaits_arrivals_ = true;
    start_on(std::make_unique<test::CountingQueue>(*parts_->queue), 2);
  }
  void start_on(std::unique_ptr<Queue> queue, int steps_in_flight,
                std::chrono::milliseconds step_timeout = std::chrono::milliseconds(0)) {
    make_on(std::move(queue), steps_in_flight, step_timeout);
    outputs_->start();
    loop_->start();
  }
  void make_on(std::unique_ptr<Queue> queue, int steps_in_flight,
               std::chrono::milliseconds step_timeout) {
    queue_ = std::move(queue);
    loop_ = std::make_unique<EngineLoop>(EngineLoop::Parts{.queue = *queue_,
                                                           .runner = *parts_->runner,
                                                           .scheduler = *parts_->scheduler,
                                                           .policy = *parts_->policy,
                                                           .outputs = ring_,
                                                           .memory = *parts_->memory,
                                                           .awaits_arrivals = awaits_arrivals_},
                                         steps_in_flight, TestHooks{}, step_timeout);
    outputs_ = std::make_unique<OutputProcessor>(
        ring_, loop_->intake(),
        OutputProcessor::Hooks{.forget = [](const RequestGroup&) {},
                               .device_error = [this] { return loop_->error(); }});
  }
  void TearDown() override { stop(); }
  void stop() {
    if (loop_ != nullptr) loop_->stop();
    if (outputs_ != nullptr) outputs_->join();
  }

  RequestState* record(int number, int max_tokens, double queue_timeout = 0, double timeout = 0) {
    Request asked = request(30 * number, 10, max_tokens);
    asked.queue_timeout_seconds = queue_timeout;
    asked.timeout_seconds = timeout;
    auto made = parts_->record(std::move(asked), static_cast<uint64_t>(number));
    made->group->callback = [this](const RequestOutput& output) {
      RequestOutput& sum = sums_[output.request_id];
      sum.token_ids.insert(sum.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
      if (!output.finished) return;
      sum.finish_reason = output.finish_reason;
      sum.status = output.status;
      num_finished_.fetch_add(1);
    };
    return made.release();
  }
  void await_finished(int count) const {
    while (num_finished_.load() < count) std::this_thread::yield();
  }

  std::unique_ptr<EngineParts> parts_;
  std::unique_ptr<Queue> queue_;
  GatedQueue* gated_ = nullptr;  // the queue, where it has a gate
  bool awaits_arrivals_ = false;
  OutputRing ring_{64};
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<OutputProcessor> outputs_;
  std::map<std::string, RequestOutput> sums_;
  std::atomic<int> num_finished_{0};
};

// The end of the outputs, which TearDown waits for, comes without the thread that did not start.
TEST_F(EngineLoopTest, WithoutItsThreadTheOutputsEnd) {
  auto parts = EngineParts::make(folder(), 3);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  parts_ = std::move(parts).value();
  make_on(std::make_unique<test::CountingQueue>(*parts_->queue), 2, std::chrono::milliseconds(0));
  outputs_->start();
  const test::NoThreads none;
  EXPECT_THROW(loop_->start(), std::system_error);
}

TEST_F(EngineLoopTest, RunsMoreRequestsThanSlots) {
  start(1 << 20, 2);
  for (int i = 0; i < 10; ++i) loop_->intake().push(record(i, 15));
  await_finished(10);
  stop();
  for (int i = 0; i < 10; ++i) {
    const RequestOutput& sum = sums_["req-" + std::to_string(i)];
    EXPECT_EQ(sum.finish_reason, FinishReason::kLength);
    EXPECT_EQ(sum.token_ids, expected(30 * i, 10, 15));
  }
  EXPECT_GT(loop_->num_steps(), 0);
  EXPECT_TRUE(loop_->error().ok());
  EXPECT_TRUE(parts_->scheduler->idle());
}

TEST_F(EngineLoopTest, TextsAreTheSameWherePlansWaitForArrivals) {
  start_awaiting();
  for (int i = 0; i < 10; ++i) {
    loop_->intake().push(record(i, 15));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  await_finished(10);
  stop();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(sums_["req-" + std::to_string(i)].token_ids, expected(30 * i, 10, 15));
  }
  EXPECT_TRUE(parts_->scheduler->idle());
}

class EngineLoopError : public EngineLoopTest, public testing::WithParamInterface<int> {};

TEST_P(EngineLoopError, EndsEveryRequest) {
  start(4, GetParam());
  for (int i = 0; i < 6; ++i) loop_->intake().push(record(i, 100));
  await_finished(6);
  EXPECT_EQ(loop_->error().message(), "device queue: broken");
  // What comes in afterwards ends at once too.
  loop_->intake().push(record(6, 100));
  await_finished(7);
  stop();
  for (const auto& [id, sum] : sums_) {
    EXPECT_EQ(sum.finish_reason, FinishReason::kError) << id;
    EXPECT_EQ(sum.status.message(), "device queue: broken") << id;
  }
  EXPECT_TRUE(parts_->scheduler->idle());
}

INSTANTIATE_TEST_SUITE_P(StepsInFlight, EngineLoopError, testing::Values(1, 2, 3));

TEST_F(EngineLoopTest, ADeviceThatHangsIsGivenUp) {
  start_hanging(3, std::chrono::milliseconds(200));
  for (int i = 0; i < 6; ++i) loop_->intake().push(record(i, 100));
  await_finished(6);
  EXPECT_TRUE(loop_->device_hangs());
  for (const auto& [id, sum] : sums_) {
    EXPECT_EQ(sum.finish_reason, FinishReason::kError) << id;
    EXPECT_NE(sum.status.message().find("the device has not finished step 2 within 200 ms"),
              std::string::npos)
        << sum.status.message();
  }
  loop_->intake().push(record(6, 100));
  await_finished(7);
  stop();
  EXPECT_TRUE(parts_->scheduler->idle());
}

TEST_F(EngineLoopTest, ARequestThatIsNotBegunInTimeEnds) {
  start_gated(0);
  // The engine has four slots.
  for (int i = 0; i < 4; ++i) loop_->intake().push(record(i, 100, 600));
  RequestState* fifth = record(4, 100, 0.02);
  const int64_t deadline = fifth->queue_deadline_ns;
  loop_->intake().push(fifth);
  loop_->intake().push(record(5, 10, 600));
  while (now_ns() < deadline) std::this_thread::yield();
  gated_->gate.open();
  await_finished(6);
  stop();
  const RequestOutput& late = sums_["req-4"];
  EXPECT_EQ(late.finish_reason, FinishReason::kError);
  EXPECT_EQ(late.status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(late.status.message().find("queue_timeout_seconds of 0.02 s"), std::string::npos)
      << late.status.message();
  EXPECT_TRUE(late.token_ids.empty());
  for (const int i : {0, 1, 2, 3}) {
    EXPECT_EQ(sums_["req-" + std::to_string(i)].token_ids, expected(30 * i, 10, 100));
  }
  EXPECT_EQ(sums_["req-5"].token_ids, expected(150, 10, 10));
  EXPECT_TRUE(parts_->scheduler->idle());
}

TEST_F(EngineLoopTest, ARequestThatTakesTooLongEndsWithWhatItHas) {
  start_gated(10);
  RequestState* first = record(0, 200, 0.02, 0.05);
  // The machine does not say when they pass: not before ten steps, and then at once.
  first->queue_deadline_ns = first->deadline_ns = INT64_MAX - 1;
  loop_->intake().push(first);
  ASSERT_TRUE(gated_->reached.wait());
  first->queue_deadline_ns = first->deadline_ns = now_ns();
  // Deadlines are looked at when the earliest that was told has passed.
  RequestState* second = record(1, 30, 600);
  RequestState* third = record(2, 30, 1e-6);
  loop_->intake().push(second);
  loop_->intake().push(third);
  gated_->gate.open();
  await_finished(3);
  stop();
  const RequestOutput& late = sums_["req-0"];
  EXPECT_EQ(late.finish_reason, FinishReason::kError);
  EXPECT_EQ(late.status.code(), StatusCode::kAborted);
  EXPECT_NE(late.status.message().find("timeout_seconds of 0.05 s and was ended after"),
            std::string::npos)
      << late.status.message();
  std::vector<int32_t> whole = expected(0, 10, 200);
  ASSERT_FALSE(late.token_ids.empty());
  ASSERT_LT(late.token_ids.size(), whole.size());
  whole.resize(late.token_ids.size());
  EXPECT_EQ(late.token_ids, whole);
  EXPECT_EQ(sums_["req-1"].token_ids, expected(30, 10, 30));
  EXPECT_TRUE(parts_->scheduler->idle());
}

TEST_F(EngineLoopTest, TimesOfStepsAndPhases) {
  start(1 << 20, 2);
  for (int i = 0; i < 4; ++i) loop_->intake().push(record(i, 30));
  await_finished(4);
  stop();
  const StepTiming timing = loop_->timing();
  EXPECT_EQ(timing.num_planned, loop_->num_steps());
  EXPECT_EQ(timing.num_steps, loop_->num_steps() - 1);
  EXPECT_GT(timing.num_gaps, 0);
  EXPECT_LE(timing.num_gaps, timing.num_steps);
  EXPECT_GT(timing.device_ns, 0);
  EXPECT_GT(timing.draft_ns, 0);
  EXPECT_LT(timing.draft_ns, timing.device_ns);
  for (const int64_t ns :
       {timing.plan_ns, timing.encode_ns, timing.submit_ns, timing.wait_ns, timing.reconcile_ns}) {
    EXPECT_GT(ns, 0);
  }
}

TEST_F(EngineLoopTest, AnAbortAnnouncedBeforeTheRecordCameInIsNotLost) {
  start(1 << 20, 2);
  RequestState* early = record(0, 200);
  early->end_requested.store(true);
  loop_->intake().announce_end();
  ASSERT_TRUE(test::eventually([&] { return !loop_->intake().has_news(); }));
  loop_->intake().push(early);
  await_finished(1);
  EXPECT_EQ(sums_["req-0"].finish_reason, FinishReason::kAbort);
}

TEST_F(EngineLoopTest, StopAbortsWhatRunsAndWhatWaits) {
  start(1 << 20, 3);
  for (int i = 0; i < 7; ++i) loop_->intake().push(record(i, 200));
  stop();
  EXPECT_EQ(num_finished_.load(), 7);
  EXPECT_TRUE(parts_->scheduler->idle());
  EXPECT_EQ(parts_->scheduler->blocks().num_free(), parts_->scheduler->blocks().num_usable());
}

TEST_F(EngineLoopTest, OccupancyReturnsToAllFree) {
  start(1 << 20, 2);
  EXPECT_EQ(loop_->occupancy().free_slots.load(), EngineParts::kNumSlots);
  loop_->intake().push(record(0, 20));
  await_finished(1);
  while (loop_->occupancy().free_slots.load() != EngineParts::kNumSlots) std::this_thread::yield();
  EXPECT_EQ(loop_->occupancy().free_blocks.load(), parts_->scheduler->blocks().num_usable());
}

}  // namespace
}  // namespace foretoken
