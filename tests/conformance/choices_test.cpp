#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "conformance/harness.h"

// Several choices of one request.

namespace foretoken {
namespace {

Request request_of(int n, int max_tokens) {
  Request request;
  request.prompt = "Once upon a time there was a little girl who lived in a house near the sea.";
  request.sampling.n = n;
  request.sampling.seed = 11;
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

std::unique_ptr<Engine> engine_of(const Variant& variant, int max_num_seqs = 32) {
  EngineConfig config = config_of(variant, bundled_model());
  config.max_num_seqs = max_num_seqs;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  return engine;
}

TEST(Choices, DifferAndTheFirstIsThatOfASingleRequest) {
  const auto engine = engine_of({.num_draft_tokens = 3, .steps_in_flight = 2});
  const auto outputs = engine->generate({request_of(5, 20), request_of(1, 20)});
  ASSERT_EQ(outputs.size(), 6u);
  std::set<std::vector<int32_t>> different;
  for (int i = 0; i < 5; ++i) {
    const RequestOutput& output = outputs[static_cast<size_t>(i)];
    EXPECT_EQ(output.index, i);
    EXPECT_EQ(output.request_id, outputs[0].request_id);
    EXPECT_EQ(output.token_ids.size(), 20u);
    different.insert(output.token_ids);
  }
  EXPECT_EQ(different.size(), 5u);
  EXPECT_EQ(outputs[5].token_ids, outputs[0].token_ids);
  EXPECT_NE(outputs[5].request_id, outputs[0].request_id);
  // More choices leave the first ones as they are, with one slot and without drafts too.
  const auto more = engine_of({}, 1)->generate({request_of(8, 20)});
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(more[i].token_ids, outputs[i].token_ids);
}

TEST(Choices, FindTheirPromptInThePrefixCache) {
  const auto engine = engine_of({.prefix_caching = true}, 2);
  const auto outputs = engine->generate({request_of(6, 4)});
  EXPECT_EQ(outputs[0].stats.num_cached_tokens, 0);
  for (size_t i = 2; i < 6; ++i) EXPECT_GE(outputs[i].stats.num_cached_tokens, 16) << i;
}

TEST(Choices, StreamUnderOneIdAndTheLastOneEndsTheRequest) {
  const auto engine = engine_of({.steps_in_flight = 2});
  std::map<int, int> num_finished;
  std::atomic<int> num_requests{0};
  int num_outputs_after = 0;
  Request request = request_of(4, 12);
  request.sampling.prompt_logprobs = 1;
  std::map<int, size_t> num_prompt_rows;
  ASSERT_TRUE(engine
                  ->submit(request,
                           [&](const RequestOutput& output) {
                             if (num_requests.load() > 0) ++num_outputs_after;
                             num_prompt_rows[output.index] += output.prompt_logprobs.size();
                             if (output.finished) ++num_finished[output.index];
                             if (output.request_finished) num_requests.fetch_add(1);
                           })
                  .ok());
  while (num_requests.load() == 0) std::this_thread::yield();
  expect_all_free(*engine);
  EXPECT_EQ(num_finished, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(num_outputs_after, 0);
  EXPECT_GT(num_prompt_rows[0], 10u);
  EXPECT_EQ(num_prompt_rows[1] + num_prompt_rows[2] + num_prompt_rows[3], 0u);
  EXPECT_EQ(engine->stats().num_finished_requests, 1);
  EXPECT_EQ(engine->stats().requests.num_output_tokens, 48);
}

TEST(Choices, AnAbortEndsAllOfThem) {
  const auto engine = engine_of({.num_draft_tokens = 2, .steps_in_flight = 2}, 3);
  Request request = request_of(9, 900);
  request.request_id = "many";
  std::atomic<int> num_finished{0};
  std::atomic<int> num_aborted{0};
  std::atomic<bool> done{false};
  ASSERT_TRUE(engine
                  ->submit(request,
                           [&](const RequestOutput& output) {
                             if (!output.finished) engine->abort("many");
                             if (output.finished) num_finished.fetch_add(1);
                             if (output.finish_reason == FinishReason::kAbort) {
                               num_aborted.fetch_add(1);
                             }
                             if (output.request_finished) done.store(true);
                           })
                  .ok());
  while (!done.load()) std::this_thread::yield();
  EXPECT_EQ(num_finished.load(), 9);
  EXPECT_EQ(num_aborted.load(), 9);
  expect_all_free(*engine);
}

TEST(Choices, EachHasTheErrorOfARefusedRequest) {
  const auto engine = engine_of({});
  Request wrong = request_of(3, 4);
  wrong.sampling.top_p = 2;
  const auto outputs = engine->generate({wrong, request_of(2, 4)});
  ASSERT_EQ(outputs.size(), 5u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(outputs[i].finish_reason, FinishReason::kError);
  EXPECT_EQ(outputs[4].token_ids.size(), 4u);
  wrong.sampling.n = 1 << 30;
  EXPECT_EQ(engine->generate({wrong}).size(), 128u);
}

}  // namespace
}  // namespace foretoken
