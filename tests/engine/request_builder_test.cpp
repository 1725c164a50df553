#include "engine/request_builder.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <functional>
#include <limits>

namespace foretoken {
namespace {

const RequestLimits kLimits{.max_model_len = 100,
                            .max_blocks = 7,
                            .vocab_size = 50,
                            .num_speculative_tokens = 4,
                            .max_logprobs = 10,
                            .max_processor_rows = 4,
                            .hidden_size = 8,
                            .seed = 9,
                            .eos_token_ids = {2, 3}};

Request request_of(int length) {
  Request request;
  request.prompt_token_ids.assign(static_cast<size_t>(length), 7);
  return request;
}

using Records = std::vector<std::unique_ptr<RequestState>>;

Result<Records> build(Request request, uint64_t number = 0, const RequestLimits& limits = kLimits) {
  return build_request(std::move(request), nullptr, limits, nullptr, number);
}

void expect_refused(const std::function<void(Request&)>& change, const char* part) {
  Request request = request_of(5);
  change(request);
  const auto built = build(std::move(request));
  EXPECT_EQ(built.status().code(), StatusCode::kInvalidArgument) << part;
  EXPECT_NE(built.status().message().find(part), std::string::npos) << built.status().message();
}

TEST(RequestBuilder, FillsSequenceAndSlot) {
  Request request = request_of(5);
  request.sampling.max_tokens = 30;
  request.sampling.min_tokens = 3;
  request.sampling.seed = 42;
  request.sampling.top_k = -1;
  request.sampling.stop_token_ids = {9, 2, 9};
  const auto built = build(std::move(request), 11);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const RequestState& state = *built.value().front();
  EXPECT_EQ(state.sequence.prompt_len, 5);
  EXPECT_EQ(state.sequence.max_len, 35);
  EXPECT_EQ(state.sequence.max_drafts, 4);
  EXPECT_EQ(state.sequence.owner, &state);
  EXPECT_GE(state.sequence.tokens.capacity(), 35u);
  EXPECT_GE(state.sequence.blocks.capacity(), 7u);
  EXPECT_EQ(state.params.seed, 42u);
  EXPECT_EQ(state.params.top_k, 0);
  EXPECT_EQ(state.params.min_len, 8);
  EXPECT_EQ(state.params.max_len, 35);
  ASSERT_EQ(state.params.num_stop_ids, 3);
  EXPECT_EQ(state.params.stop_ids[0], 2);
  EXPECT_EQ(state.params.stop_ids[1], 3);
  EXPECT_EQ(state.params.stop_ids[2], 9);
  EXPECT_EQ(state.group->request.request_id, "req-11");
  EXPECT_EQ(state.stats.num_prompt_tokens, 5);
}

TEST(RequestBuilder, IgnoreEosLeavesOnlyTheRequestsIds) {
  Request request = request_of(5);
  request.sampling.ignore_eos = true;
  request.sampling.stop_token_ids = {9};
  const auto built = build(std::move(request));
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built.value().front()->params.num_stop_ids, 1);
}

TEST(RequestBuilder, LengthsEndAtTheModelsAndNeverOverflow) {
  Request request = request_of(5);
  request.sampling.max_tokens = INT_MAX;
  request.sampling.min_tokens = INT_MAX;
  const auto built = build(std::move(request));
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_EQ(built.value().front()->sequence.max_len, 100);
  EXPECT_EQ(built.value().front()->params.min_len, 100);
}

TEST(RequestBuilder, SeedsComeFromTheRequestOrItsNumber) {
  const auto seed_of = [](uint64_t number, std::optional<uint64_t> seed, uint64_t engine_seed) {
    Request request = request_of(2);
    request.sampling.seed = seed;
    RequestLimits limits = kLimits;
    limits.seed = engine_seed;
    return build(std::move(request), number, limits).value().front()->params.seed;
  };
  EXPECT_EQ(seed_of(1, 5, 0), seed_of(2, 5, 9));
  EXPECT_EQ(seed_of(1, std::nullopt, 3), seed_of(1, std::nullopt, 3));
  EXPECT_NE(seed_of(1, std::nullopt, 3), seed_of(2, std::nullopt, 3));
  EXPECT_NE(seed_of(1, std::nullopt, 3), seed_of(1, std::nullopt, 4));
}

TEST(RequestBuilder, SpeculationOfOneRequest) {
  const auto drafts_of = [](SpeculativeParams speculative) {
    Request request = request_of(2);
    request.speculative = speculative;
    return build(std::move(request)).value().front()->params.max_drafts;
  };
  EXPECT_EQ(drafts_of({}), 4);
  EXPECT_EQ(drafts_of({.enabled = false, .num_speculative_tokens = {}}), 0);
  EXPECT_EQ(drafts_of({.enabled = {}, .num_speculative_tokens = 2}), 2);
  EXPECT_EQ(drafts_of({.enabled = true, .num_speculative_tokens = 0}), 0);
  expect_refused([](Request& r) { r.speculative.num_speculative_tokens = 5; }, "allows 0 to 4");
  expect_refused([](Request& r) { r.speculative.num_speculative_tokens = -1; },
                 "num_speculative_tokens is -1");
}

TEST(RequestBuilder, SaltsSeparate) {
  const auto salt_of = [](const std::string& salt) {
    Request request = request_of(2);
    request.cache_salt = salt;
    return build(std::move(request)).value().front()->sequence.cache_salt;
  };
  EXPECT_EQ(salt_of(""), 0u);
  EXPECT_NE(salt_of("a"), 0u);
  EXPECT_EQ(salt_of("a"), salt_of("a"));
  EXPECT_NE(salt_of("a"), salt_of("b"));
}

TEST(RequestBuilder, NamesWhatIsWrong) {
  expect_refused([](Request& r) { r.prompt_token_ids.clear(); }, "prompt is empty");
  expect_refused(
      [](Request& r) {
        r.prompt_token_ids.clear();
        r.prompt = "text";
      },
      "no tokenizer.json");
  expect_refused([](Request& r) { r.prompt_token_ids.assign(100, 1); }, "max_model_len is 100");
  expect_refused([](Request& r) { r.prompt_token_ids[2] = 50; }, "token id 50");
  expect_refused([](Request& r) { r.prompt_token_ids[2] = -1; }, "token id -1");
  expect_refused([](Request& r) { r.sampling.temperature = -0.1f; }, "temperature");
  expect_refused([](Request& r) { r.sampling.temperature = NAN; }, "temperature");
  expect_refused(
      [](Request& r) { r.sampling.temperature = std::numeric_limits<float>::infinity(); },
      "temperature");
  expect_refused([](Request& r) { r.sampling.top_p = 0; }, "top_p");
  expect_refused([](Request& r) { r.sampling.top_p = 1.5f; }, "top_p");
  expect_refused([](Request& r) { r.sampling.top_p = NAN; }, "top_p");
  expect_refused([](Request& r) { r.sampling.top_k = -2; }, "top_k");
  expect_refused([](Request& r) { r.sampling.max_tokens = 0; }, "max_tokens");
  expect_refused([](Request& r) { r.sampling.min_tokens = 17; }, "min_tokens");
  expect_refused([](Request& r) { r.sampling.stop_token_ids = {50}; }, "stop_token_ids: 50");
  expect_refused([](Request& r) { r.sampling.stop = {"x"}; }, "need a tokenizer");
  expect_refused(
      [](Request& r) {
        for (int i = 0; i < 33; ++i) r.sampling.stop_token_ids.push_back(10 + i);
      },
      "at most 32");
}

}  // namespace
}  // namespace foretoken
