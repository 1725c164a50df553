#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <latch>
#include <random>
#include <thread>

#include "conformance/field_draws.h"
#include "conformance/harness.h"
#include "engine/engine_impl.h"
#include "engine/request/request_state.h"
#include "support/gate.h"
#include "support/hold_processor.h"

// Aborts at any time lose nothing but the request itself.

namespace foretoken {
namespace {

Request random_request(std::mt19937& random) {
  Request request;
  const int length = 1 + static_cast<int>(random() % 60);
  for (int i = 0; i < length; ++i) {
    request.prompt_token_ids.push_back(10 + static_cast<int32_t>(random() % 500));
  }
  request.sampling.max_tokens = 1 + static_cast<int>(random() % 24);
  request.sampling.temperature = random() % 2 == 0 ? 0.0f : 1.0f;
  return request;
}

// The engine stands still, with a request of its own, until it is released.
class HeldEngine {
 public:
  explicit HeldEngine(Engine& engine) {
    Request request;
    request.prompt_token_ids = {10, 11, 12};
    request.sampling.max_tokens = 1;
    request.sampling.logits_processors = {hold_};
    ended_ = engine.generate_async(std::move(request));
  }
  void release() {
    hold_->release();
    EXPECT_TRUE(ended_.get()[0].status.ok());
  }

 private:
  std::shared_ptr<test::HoldProcessor> hold_ = std::make_shared<test::HoldProcessor>();
  std::future<std::vector<RequestOutput>> ended_;
};

TEST(Abort, TwoThousandRandomRequestsLeaveNothingBehind) {
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config_of({.num_draft_tokens = 3,
                                             .steps_in_flight = 2,
                                             .max_batched_tokens = 64,
                                             .num_blocks = 60,
                                             .prefix_caching = true},
                                            bundled_model()),
                                  &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  const int num_requests = num_test_prompts(200) * 10;
  std::atomic<int> num_finished{0};
  std::atomic<int> num_aborted{0};
  // Nothing goes on before both have sent some, so that some are aborted before they can end.
  HeldEngine held(*engine);
  const int num_held = std::min(10, num_requests / 2);
  std::latch both_sent(2);
  const auto client = [&](int client_number) {
    std::mt19937 random(static_cast<unsigned>(client_number));
    std::vector<std::string> ids;
    for (int i = 0; i < num_requests / 2; ++i) {
      std::string id;
      const Status status = engine->submit(
          random_request(random),
          [&](const RequestOutput& output) {
            if (!output.finished) return;
            if (output.finish_reason == FinishReason::kAbort) num_aborted.fetch_add(1);
            EXPECT_NE(output.finish_reason, FinishReason::kError) << output.status.message();
            num_finished.fetch_add(1);
          },
          &id);
      ASSERT_TRUE(status.ok()) << status.message();
      ids.push_back(std::move(id));
      if (random() % 3 == 0) engine->abort(ids[random() % ids.size()]);
      if (i + 1 == num_held) both_sent.count_down();
      if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  std::thread one(client, 1);
  std::thread two(client, 2);
  both_sent.wait();
  held.release();
  one.join();
  two.join();
  while (num_finished.load() < num_requests / 2 * 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  expect_all_free(*engine);
  EXPECT_GT(num_aborted.load(), 0);
  std::cout << num_requests << " requests, " << num_aborted.load() << " aborted\n";
}

// A neighbour's ids do not change when a request beside it is cancelled after any number of tokens.
TEST(Abort, AtEveryStepNumberTheNeighbourGoesOn) {
  VictimProgress told;
  // Of the victim, as far as the engine thread knows. It does not run ahead of the callback.
  size_t committed = 0;
  const auto keep_pace = [&](uint64_t, const Span& span, const SpanResult& result) {
    const auto& owner = *static_cast<const RequestState*>(span.sequence->owner);
    if (owner.group->request.request_id != "victim") return;
    if (span.is_first) committed = 0;
    EXPECT_TRUE(test::eventually([&] { return told.num_tokens >= committed || told.done; }));
    committed += static_cast<size_t>(result.num_committed);
  };
  const auto made =
      EngineImpl::create(config_of({.num_draft_tokens = 3, .steps_in_flight = 2}, bundled_model()),
                         {.on_result = keep_pace});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Engine& engine = *made.value();
  std::mt19937 random(5);
  Request neighbour = random_request(random);
  neighbour.sampling.max_tokens = 32;
  neighbour.sampling.ignore_eos = true;
  const std::vector<int32_t> expected = engine.generate({neighbour})[0].token_ids;
  ASSERT_EQ(expected.size(), 32u);
  for (size_t after = 0; after < 20; ++after) {
    Request victim = random_request(random);
    victim.sampling.max_tokens = 900;
    victim.sampling.ignore_eos = true;
    EXPECT_LT(expect_cancel_harms_nobody(engine, victim, neighbour, expected, after, &told), 40u);
  }
}

TEST(Abort, DestroyingABusyEngineEndsEveryRequest) {
  std::atomic<int> num_finished{0};
  {
    std::unique_ptr<Engine> engine;
    ASSERT_TRUE(make_engine(config_of({.steps_in_flight = 2}, bundled_model()), &engine).ok());
    for (int i = 0; i < 50; ++i) {
      Request request;
      request.prompt_token_ids = {10, 11, 12 + i};
      request.sampling.max_tokens = 500;
      ASSERT_TRUE(engine
                      ->submit(request,
                               [&](const RequestOutput& output) {
                                 if (output.finished) num_finished.fetch_add(1);
                               })
                      .ok());
    }
  }
  EXPECT_EQ(num_finished.load(), 50);
}

// Requests with every field in random combinations, each aborted after so many outputs.
TEST(Abort, WithEveryFieldLeavesNothingBehind) {
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(make_engine(config_of({.num_draft_tokens = 3,
                                     .steps_in_flight = 2,
                                     .max_batched_tokens = 24,
                                     .num_blocks = 12,
                                     .prefix_caching = true},
                                    bundled_model()),
                          &engine)
                  .ok());
  const int num_requests = num_test_prompts(200) * 2;
  std::atomic<int> num_open{num_requests};
  std::atomic<int> num_aborted{0};
  HeldEngine held(*engine);
  for (int i = 0; i < num_requests; ++i) {
    Request request = draw_request(i);
    request.request_id = "draw-" + std::to_string(i);
    request.sampling.max_tokens += 8;
    // Three quarters come before the first of them goes on, so that none has ended when it is
    // aborted.
    if (i == num_requests * 3 / 4) held.release();
    auto num_outputs = std::make_shared<int>(0);
    const auto look = [&, i, num_outputs](const RequestOutput& output) {
      if (++*num_outputs > i % 9) engine->abort(output.request_id);
      if (output.finish_reason == FinishReason::kAbort) num_aborted.fetch_add(1);
      EXPECT_NE(output.finish_reason, FinishReason::kError) << output.status.message();
      if (output.request_finished) num_open.fetch_sub(1);
    };
    const Status status = engine->submit(request, look);
    ASSERT_TRUE(status.ok()) << status.message();
    // Some before their first step, or while their prompt is in flight.
    if (i % 5 == 0) engine->abort(request.request_id);
  }
  while (num_open.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(num_aborted.load(), num_requests / 10);
  expect_all_free(*engine);
  std::cout << num_requests << " requests, " << num_aborted.load() << " choices aborted\n";
}

}  // namespace
}  // namespace foretoken
