#include "engine/engine_impl.h"

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "engine/dialled_engine.h"
#include "support/folders.h"
#include "support/gate.h"
#include "support/held_queue.h"
#include "support/hold_processor.h"
#include "support/no_threads.h"
#include "support/sanitizers.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class EngineTest : public DialledEngine {};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(EngineTest, TellsWhatItDecided) {
  const auto engine = make(config(4));
  const EngineInfo& info = engine->info();
  EXPECT_EQ(info.architecture, "LlamaForCausalLM");
  EXPECT_EQ(info.drafter, "ngram");
  EXPECT_EQ(info.max_model_len, 512);
  EXPECT_EQ(info.max_num_seqs, 8);
  EXPECT_EQ(info.num_blocks, 8 * 32);
  EXPECT_EQ(info.drafter_bytes, 0);
  EXPECT_GT(info.weight_bytes, 0);
  EXPECT_GT(info.kv_cache_bytes, 0);
  EXPECT_EQ(make(config(0))->info().drafter, "");
}

TEST_F(EngineTest, WithoutThreadsItIsToldAndEnds) {
  const test::NoThreads none;
  const auto made = EngineImpl::create(config(4), {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(contains(made.status().message(), "ulimit -u")) << made.status().message();
}

// Requests end, and so does the engine, while the device stands still.
TEST_F(EngineTest, ADeviceThatHangsIsGivenUp) {
  EngineConfig slow = config(0);
  slow.step_timeout_seconds = 1;
  std::atomic<test::HeldQueue*> queue{nullptr};
  auto made = EngineImpl::create(slow, {.wrap_queue = test::wrap_into(&queue)});
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto gate = queue.load()->hold();
  const RequestOutput output = made.value()->generate({request(0, 10, 5)})[0];
  EXPECT_EQ(output.finish_reason, FinishReason::kError);
  EXPECT_TRUE(contains(output.status.message(), "the device has not finished step 0"))
      << output.status.message();
  EXPECT_TRUE(contains(output.status.message(), "--step-timeout-seconds"));
  EXPECT_FALSE(made.value()->submit(request(0, 10, 5), nullptr, nullptr).ok());
  made = internal_error("gone");
  const auto other = make(config(0));
  EXPECT_EQ(other->generate({request(0, 10, 5)})[0].token_ids, expected(0, 10, 5));
  // What was given up is kept until the process ends, which must not happen beside its steps.
  gate->open();
  EXPECT_TRUE(queue.load()->drain().ok());
}

TEST_F(EngineTest, GraphModes) {
  EngineConfig with = config(4);
  with.cudagraph_mode = "full_and_piecewise";
  with.cudagraph_capture_sizes = {1, 5, 20};
  const auto engine = make(with);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->info().cudagraph_mode, "FULL_AND_PIECEWISE");
  EXPECT_GT(engine->info().num_graphs, 3);
  EXPECT_GT(engine->info().graph_seconds, 0);
  EXPECT_EQ(engine->generate({request(0, 40, 20)})[0].token_ids, expected(0, 40, 20));
  with.enforce_eager = true;
  EXPECT_EQ(make(with)->info().num_graphs, 0);
}

TEST_F(EngineTest, CountsWhatItRan) {
  const auto engine = make(config(4));
  const RequestOutput output = engine->generate({request(0, 40, 20)})[0];
  EXPECT_EQ(output.token_ids, expected(0, 40, 20));
  EXPECT_EQ(output.stats.num_prompt_tokens, 40);
  EXPECT_EQ(output.stats.num_output_tokens, 20);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_finished_requests, 1);
  EXPECT_EQ(stats.requests.num_output_tokens, 20);
  EXPECT_EQ(stats.requests.num_steps, output.stats.num_steps);
  EXPECT_GE(stats.num_steps, output.stats.num_steps);
}

// Every prompt token and every output token but the last is computed once, whatever was drafted; a
// step that was planned before the end was known may add a row.
TEST_F(EngineTest, CountsTheTokensOfSteps) {
  const auto engine = make(config(4));
  engine->generate({request(0, 40, 20)});
  const StepTokens tokens = engine->stats().step_tokens;
  EXPECT_GE(tokens.sum, 59);
  EXPECT_LE(tokens.sum, 59 + 3);
  EXPECT_EQ(std::accumulate(tokens.num_steps.begin(), tokens.num_steps.end(), int64_t{0}),
            engine->stats().num_steps);
}

TEST_F(EngineTest, TellsWhoRunsAndWhoWaits) {
  EngineConfig narrow = config(0);
  narrow.max_num_seqs = 1;
  EngineImpl* running = nullptr;
  test::Gate both_are_there;
  std::atomic<int64_t> waited_ns{-1};
  std::atomic<bool> seen{false};
  const auto look = [&](uint64_t, const Span&, const SpanResult&) {
    (void)both_are_there.wait();
    const EngineStats stats = running->stats();
    if (stats.num_running_requests != 1 || stats.num_waiting_requests != 1) return;
    seen.store(true);
    running->abort("first");
  };
  const auto engine = EngineImpl::create(narrow, {.on_result = look});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  running = engine.value().get();
  const auto second = [&](const RequestOutput& output) {
    if (output.finished) waited_ns.store(output.stats.queue_ns);
  };
  Request first = request(0, 10, 500);
  first.request_id = "first";
  ASSERT_TRUE(running->submit(first, [](const RequestOutput&) {}, nullptr).ok());
  ASSERT_TRUE(running->submit(request(0, 10, 2), second, nullptr).ok());
  both_are_there.open();
  while (waited_ns.load() < 0) std::this_thread::yield();
  EXPECT_TRUE(seen.load());
  EXPECT_GT(waited_ns.load(), 0);
}

TEST_F(EngineTest, AnIdIsUniqueWhileItsRequestRuns) {
  const auto engine = make(config(0));
  std::atomic<int> num_finished{0};
  std::atomic<bool> reused{false};
  Request one = request(0, 10, 400);
  one.request_id = "one";
  const auto hold = std::make_shared<test::HoldProcessor>();
  one.sampling.logits_processors = {hold};
  const auto finished = [&](const RequestOutput& output) {
    if (output.finished) num_finished.fetch_add(1);
  };
  // Free again in the last callback already.
  const auto again = [&](const RequestOutput& output) {
    if (!output.finished) return;
    Request next = request(0, 10, 2);
    next.request_id = "one";
    reused.store(engine->submit(next, finished).ok());
    num_finished.fetch_add(1);
  };
  std::string id;
  ASSERT_TRUE(engine->submit(one, again, &id).ok());
  EXPECT_EQ(id, "one");
  const Status twice = engine->submit(one, finished);
  EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(contains(twice.message(), "'one' is in use"));
  engine->abort("one");
  hold->release();
  while (num_finished.load() < 2) std::this_thread::yield();
  EXPECT_TRUE(reused.load());
  engine->abort("unknown");
}

TEST_F(EngineTest, OneRequestsErrorHarmsNoOther) {
  const auto engine = make(config(4));
  Request empty = request(0, 1, 5);
  empty.prompt_token_ids.clear();
  Request too_long = request(0, 512, 5);
  Request bad_id = request(0, 5, 5);
  bad_id.prompt_token_ids[1] = 512;
  const auto outputs =
      engine->generate({request(3, 20, 10), empty, too_long, request(50, 7, 10), bad_id});
  EXPECT_EQ(outputs[0].token_ids, expected(3, 20, 10));
  EXPECT_EQ(outputs[3].token_ids, expected(50, 7, 10));
  for (const size_t wrong : {1, 2, 4}) {
    EXPECT_TRUE(outputs[wrong].finished);
    EXPECT_EQ(outputs[wrong].finish_reason, FinishReason::kError);
    EXPECT_EQ(outputs[wrong].status.code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(EngineTest, WhatCanNeverFitIsRefused) {
  EngineConfig small = config(0);
  small.num_gpu_blocks_override = 4;
  const auto engine = make(small);
  const auto outputs = engine->generate({request(0, 40, 60), request(0, 40, 20)});
  EXPECT_EQ(outputs[0].status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(outputs[1].token_ids, expected(0, 40, 20));
}

TEST_F(EngineTest, SpeculationOfOneRequest) {
  const auto engine = make(config(4));
  // The output goes through ids that the prompt has shown: every draft is right.
  Request base = request(0, 60, 40);
  for (int i = 0; i < 8; ++i) base.prompt_token_ids.push_back(cycle().at(i));
  Request off = base;
  off.speculative.enabled = false;
  Request two = base;
  two.speculative.num_speculative_tokens = 2;
  Request five = base;
  five.speculative.num_speculative_tokens = 5;
  const auto outputs = engine->generate({base, off, two, five});
  EXPECT_GT(outputs[0].stats.num_draft_tokens, 0);
  EXPECT_EQ(outputs[1].stats.num_draft_tokens, 0);
  EXPECT_EQ(outputs[1].stats.num_steps, 40);
  EXPECT_LE(outputs[2].stats.num_draft_tokens, 2 * outputs[2].stats.num_drafts);
  EXPECT_EQ(outputs[1].token_ids, outputs[0].token_ids);
  EXPECT_EQ(outputs[2].token_ids, outputs[0].token_ids);
  EXPECT_TRUE(contains(outputs[3].status.message(), "allows 0 to 4"));
}

TEST_F(EngineTest, TwoEnginesAtOnce) {
  const auto one = make(config(4));
  const auto two = make(config(0));
  const auto run = [](Engine& engine, int begin) {
    std::vector<Request> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(request(begin + 30 * i, 10 + i, 20));
    const auto outputs = engine.generate(std::move(requests));
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(outputs[static_cast<size_t>(i)].token_ids, expected(begin + 30 * i, 10 + i, 20));
    }
  };
  std::thread other([&] { run(*two, 5); });
  run(*one, 0);
  other.join();
}

TEST_F(EngineTest, AnEngineOfABrokenDeviceRefusesRequests) {
#if FT_UNDER_TSAN
  GTEST_SKIP() << "the planted fault is a data race";
#endif
  EngineConfig two_in_flight = config(0);
  two_in_flight.steps_in_flight = 2;
  std::atomic<test::HeldQueue*> queue{nullptr};
  auto engine = EngineImpl::create(
      two_in_flight, {.reuse_ring_entry = true, .wrap_queue = test::wrap_into(&queue)});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  queue.load()->hold_until_next();
  const auto outputs = engine.value()->generate({request(0, 10, 50), request(30, 10, 50)});
  for (const RequestOutput& output : outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kError);
    EXPECT_EQ(output.status.code(), StatusCode::kInternal);
  }
  const Status later = engine.value()->submit(request(0, 10, 5), nullptr, nullptr);
  EXPECT_EQ(later.code(), StatusCode::kInternal);
}

TEST_F(EngineTest, StartUpErrorsNameTheirCause) {
  const auto message_of = [](const EngineConfig& wrong) {
    std::unique_ptr<Engine> engine;
    return make_engine(wrong, &engine).message();
  };
  EngineConfig wrong = config(0);
  wrong.model = folder() + "/nowhere";
  EXPECT_TRUE(contains(message_of(wrong), "nowhere"));
  wrong = config(4);
  wrong.speculative[0].method = "xpress";
  EXPECT_TRUE(contains(message_of(wrong), "xpress"));
  wrong = config(0);
  wrong.load_format = "pickle";
  EXPECT_TRUE(contains(message_of(wrong), "pickle"));
  wrong = config(0);
  wrong.attention_backend = "magic";
  EXPECT_TRUE(contains(message_of(wrong), "magic"));
}

// Of which there is no more than a config.json.
TEST_F(EngineTest, RandomWeightsJudgeNothing) {
  const test::ScratchFolder folder;
  std::filesystem::copy(
      std::string(kSourceFolder) + "/tests/golden/encoders/bert_judge/config.json", folder.path());
  EngineConfig random = config(0);
  random.model = folder.path();
  random.load_format = "dummy";
  random.max_model_len = 64;
  const auto engine = make(random);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->info().num_labels, 0);
}

class EngineSeeds : public testing::Test {
 protected:
  static RequestOutput run(Engine& engine, std::optional<uint64_t> seed) {
    Request request;
    request.prompt = "Once upon a time";
    request.sampling.max_tokens = 24;
    request.sampling.ignore_eos = true;
    request.sampling.seed = seed;
    return engine.generate({request})[0];
  }
};

TEST_F(EngineSeeds, DecideTheText) {
  EngineConfig config;
  config.model = bundled_model_folder();
  config.device = engine_test_device();
  config.max_model_len = 256;
  config.max_num_seqs = 4;
  config.num_gpu_blocks_override = 64;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  const RequestOutput one = run(*engine, 1);
  ASSERT_TRUE(one.status.ok()) << one.status.message();
  EXPECT_EQ(run(*engine, 1).text, one.text);
  EXPECT_NE(run(*engine, 2).text, one.text);
  EXPECT_NE(run(*engine, std::nullopt).text, run(*engine, std::nullopt).text);
}

}  // namespace
}  // namespace foretoken
