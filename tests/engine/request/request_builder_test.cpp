#include "engine/request/request_builder.h"

#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cmath>
#include <functional>
#include <limits>

namespace foretoken {
namespace {

constexpr DrafterTraits kLooksUp = {.looks_up = true};

const RequestLimits kBuilderLimits{.max_model_len = 100,
                                   .max_blocks = 7,
                                   .vocab_size = 50,
                                   .drafters = {{"ngram", 4}, {"eagle", 2}},
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

Result<Records> build(Request request, uint64_t number = 0,
                      const RequestLimits& limits = kBuilderLimits) {
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
  EXPECT_EQ(state.sequence.max_draft_tokens, 4);
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

TEST(RequestBuilder, ListsOfDrafters) {
  RequestLimits limits = kBuilderLimits;
  limits.drafters = {{"ngram", 4, kLooksUp, true}, {"eagle", 2}, {"suffix", 6, kLooksUp}};
  const auto chosen = [&](const std::string& method) {
    Request request = request_of(5);
    request.speculative.method = method;
    const auto built = build(request, 0, limits);
    EXPECT_TRUE(built.ok()) << built.status().message();
    const RequestState& state = *built.value().front();
    EXPECT_EQ(state.sequence.lookups, static_cast<uint32_t>(state.params.lookups));
    EXPECT_EQ(state.sequence.drafter, state.params.drafter);
    return std::array<int, 3>{state.sequence.drafter, state.params.lookups,
                              state.sequence.max_draft_tokens};
  };
  EXPECT_EQ(chosen(""), (std::array{1, 0b001, 4})) << "the engine's list";
  EXPECT_EQ(chosen("ngram"), (std::array{0, 0, 4}));
  EXPECT_EQ(chosen("suffix+eagle"), (std::array{1, 0b100, 6}));
  EXPECT_EQ(chosen("suffix+ngram+eagle"), (std::array{1, 0b101, 6}));
  Request quiet = request_of(5);
  quiet.speculative.enabled = false;
  const auto built = build(quiet, 0, limits);
  EXPECT_EQ(built.value().front()->params.lookups, 0b001) << "what learns, learns from it";
  EXPECT_EQ(built.value().front()->params.max_draft_tokens, 0);
  for (const auto& [method, part] :
       {std::pair{"eagle+ngram", "'eagle' always drafts"},
        {"ngram+ngram", "names 'ngram' twice"},
        {"ngram+mtp", "use one of: ngram, eagle, suffix"},
        {"+", "'' is not a drafter of this engine; use one of: ngram"}}) {
    Request request = request_of(5);
    request.speculative.method = method;
    const Status status = build(request, 0, limits).status();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(RequestBuilder, APredictionGoesToADrafterThatLooksItUp) {
  RequestLimits limits = kBuilderLimits;
  limits.drafters = {{"eagle", 2}, {"ngram", 4, kLooksUp}};
  limits.max_prediction = 3;
  Request request = request_of(5);
  request.prediction_token_ids = {11, 12, 13, 14};
  const auto built = build(request, 0, limits);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const RequestState& state = *built.value().front();
  EXPECT_EQ(state.sequence.drafter, 1);
  EXPECT_TRUE(state.sequence.is_predicted);
  EXPECT_EQ(state.params.num_prediction, 3) << "as many as a slot has room for";
  EXPECT_EQ(state.init_words, (std::vector<uint32_t>{11, 12, 13}));

  const auto without = [&](const std::function<void(Request&, RequestLimits&)>& change) {
    Request other = request;
    RequestLimits other_limits = limits;
    change(other, other_limits);
    const auto plain = build(other, 0, other_limits);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    EXPECT_EQ(plain.value().front()->params.num_prediction, 0);
    EXPECT_FALSE(plain.value().front()->sequence.is_predicted);
    EXPECT_TRUE(plain.value().front()->init_words.empty());
  };
  without([](Request& r, RequestLimits&) { r.speculative.method = "eagle"; });
  without([](Request& r, RequestLimits&) { r.speculative.enabled = false; });
  without([](Request&, RequestLimits& l) { l.drafters = {{"eagle", 2}}; });
  without([](Request&, RequestLimits& l) { l.drafters.clear(); });
  expect_refused([](Request& r) { r.prediction_token_ids = {1, 50}; }, "prediction token id 50");
}

TEST(RequestBuilder, IgnoreEosLeavesOnlyTheRequestsIds) {
  Request request = request_of(5);
  request.sampling.ignore_eos = true;
  request.sampling.stop_token_ids = {9};
  const auto built = build(std::move(request));
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built.value().front()->params.num_stop_ids, 1);
}

// What the length policy may count on: 5 tokens of prompt and at least so many.
TEST(RequestBuilder, KnowsTheLeastLengthOfAnOutput) {
  const auto least = [](const std::function<void(SamplingParams&)>& change) {
    Request request = request_of(5);
    request.sampling.max_tokens = 30;
    request.sampling.min_tokens = 3;
    change(request.sampling);
    const auto built = build(std::move(request));
    EXPECT_TRUE(built.ok()) << built.status().message();
    return built.ok() ? built.value().front()->sequence.min_len : -1;
  };
  EXPECT_EQ(least([](SamplingParams&) {}), 8);
  EXPECT_EQ(least([](SamplingParams& sampling) { sampling.ignore_eos = true; }), 35);
  EXPECT_EQ(least([](SamplingParams& sampling) {
              sampling.ignore_eos = true;
              sampling.max_tokens = 1000;
            }),
            100)
      << "the model ends there";
  EXPECT_EQ(least([](SamplingParams& sampling) {
              sampling.ignore_eos = true;
              sampling.stop_token_ids = {9};
            }),
            8);
  EXPECT_EQ(least([](SamplingParams& sampling) {
              sampling.max_tokens = INT_MAX;
              sampling.min_tokens = INT_MAX;
            }),
            100);
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
    RequestLimits limits = kBuilderLimits;
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
    return build(std::move(request)).value().front()->params.max_draft_tokens;
  };
  EXPECT_EQ(drafts_of({}), 4);
  EXPECT_EQ(drafts_of({.enabled = false, .num_speculative_tokens = {}, .method = ""}), 0);
  EXPECT_EQ(drafts_of({.enabled = {}, .num_speculative_tokens = 2, .method = ""}), 2);
  EXPECT_EQ(drafts_of({.enabled = true, .num_speculative_tokens = 0, .method = ""}), 0);
  expect_refused([](Request& r) { r.speculative.num_speculative_tokens = 5; }, "allows 0 to 4");
  expect_refused([](Request& r) { r.speculative.num_speculative_tokens = -1; },
                 "num_speculative_tokens is -1");
}

TEST(RequestBuilder, ARequestChoosesItsDrafter) {
  const auto of = [](SpeculativeParams speculative) {
    Request request = request_of(2);
    request.speculative = std::move(speculative);
    const auto built = build(std::move(request)).value();
    EXPECT_EQ(built.front()->params.drafter, built.front()->sequence.drafter);
    return std::pair(built.front()->sequence.drafter, built.front()->sequence.max_draft_tokens);
  };
  EXPECT_EQ(of({.enabled = {}, .num_speculative_tokens = {}, .method = ""}), std::pair(0, 4));
  EXPECT_EQ(of({.enabled = {}, .num_speculative_tokens = {}, .method = "eagle"}), std::pair(1, 2));
  EXPECT_EQ(of({.enabled = {}, .num_speculative_tokens = {}, .method = "ngram_gpu"}),
            std::pair(0, 4));
  EXPECT_EQ(of({.enabled = false, .num_speculative_tokens = 1, .method = "eagle"}),
            std::pair(1, 0));
  expect_refused([](Request& r) { r.speculative.method = "mtp"; }, "use one of: ngram, eagle");
  expect_refused(
      [](Request& r) {
        r.speculative.method = "eagle";
        r.speculative.num_speculative_tokens = 3;
      },
      "allows 0 to 2");
  RequestLimits none = kBuilderLimits;
  none.drafters = {};
  const auto refused = [&](const std::function<void(SpeculativeParams&)>& change) {
    Request request = request_of(2);
    change(request.speculative);
    return build(std::move(request), 0, none).status().message();
  };
  EXPECT_EQ(refused([](SpeculativeParams&) {}), "");
  for (const auto& change : std::vector<std::function<void(SpeculativeParams&)>>{
           [](SpeculativeParams& s) { s.enabled = true; },
           [](SpeculativeParams& s) { s.method = "ngram"; },
           [](SpeculativeParams& s) { s.num_speculative_tokens = 2; }}) {
    EXPECT_NE(refused(change).find("the engine runs without a drafter"), std::string::npos);
  }
}

TEST(RequestBuilder, SaltsSeparate) {
  const auto salt_of = [](const std::string& salt) {
    Request request = request_of(2);
    request.cache_salt = salt;
    const auto state = std::move(build(std::move(request)).value().front());
    EXPECT_EQ(state->params.cache_salt, state->sequence.cache_salt) << "the device tells them too";
    return state->sequence.cache_salt;
  };
  EXPECT_EQ(salt_of(""), 0u);
  EXPECT_NE(salt_of("a"), 0u);
  EXPECT_EQ(salt_of("a"), salt_of("a"));
  EXPECT_NE(salt_of("a"), salt_of("b"));
}

// Fields that need no tokens: sampling_checks_test.cpp.
TEST(RequestBuilder, NamesWhatIsWrong) {
  expect_refused([](Request& r) { r.prompt_token_ids.clear(); }, "prompt is empty");
  expect_refused(
      [](Request& r) {
        r.prompt_token_ids.clear();
        r.prompt = "text";
      },
      "no tokenizer.json");
  expect_refused([](Request& r) { r.prompt_token_ids.assign(100, 1); },
                 "prompt is too long: 100 tokens > 100 maximum");
  expect_refused([](Request& r) { r.prompt_token_ids[2] = 50; }, "token id 50");
  expect_refused([](Request& r) { r.prompt_token_ids[2] = -1; }, "token id -1");
  expect_refused([](Request& r) { r.sampling.top_p = 1.5f; }, "top_p is 1.5");
  expect_refused([](Request& r) { r.sampling.stop = {"x"}; }, "need a tokenizer");
  expect_refused(
      [](Request& r) {
        for (int i = 0; i < 33; ++i) r.sampling.stop_token_ids.push_back(10 + i);
      },
      "at most 32");
  expect_refused(
      [](Request& r) {
        r.pooling = Pooling::kMean;
        r.speculative.enabled = true;
      },
      "pooling gives no tokens");
}

TEST(RequestBuilder, EveryChoiceHasARecord) {
  Request request = request_of(5);
  request.sampling.n = 3;
  request.sampling.logprobs = 2;
  request.sampling.prompt_logprobs = 4;
  request.sampling.allowed_token_ids = {{1, 2}};
  const auto built = build(std::move(request), 20);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Records& records = built.value();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0]->group->num_open, 3);
  for (int i = 0; i < 3; ++i) {
    const RequestState& state = *records[static_cast<size_t>(i)];
    EXPECT_EQ(state.group, records[0]->group);
    EXPECT_EQ(state.sequence.id, 20u + static_cast<unsigned>(i));
    EXPECT_EQ(state.params.choice, i);
    EXPECT_EQ(state.output.index, i);
    EXPECT_EQ(state.params.seed, records[0]->params.seed);
    EXPECT_EQ(state.sequence.num_init_words, 2);
    EXPECT_EQ(state.init_words.size(), 2u);
    // The prompt is scored once, and only there prefix hits are passed by.
    EXPECT_EQ(state.sequence.scores_prompt, i == 0);
    EXPECT_EQ(state.sequence.bypasses_prefix_cache, i == 0);
    EXPECT_EQ(state.logprobs->num_prompt(), i == 0 ? 4 : 0);
    EXPECT_TRUE(state.logprobs->wants_output());
  }
}

TEST(RequestBuilder, PoolingFillsTheModelAndHasNoOutput) {
  Request request = request_of(100);
  request.pooling = Pooling::kLast;
  request.priority = 0;
  const auto built = build(std::move(request));
  ASSERT_TRUE(built.ok()) << built.status().message();
  const RequestState& state = *built.value().front();
  EXPECT_TRUE(state.sequence.pools);
  EXPECT_TRUE(state.sequence.bypasses_prefix_cache);
  EXPECT_EQ(state.sequence.max_len, 100);
  EXPECT_EQ(state.sequence.max_draft_tokens, 0);
  EXPECT_EQ(state.embedding.size(), 8u);
}

TEST(RequestBuilder, LongPromptsLoseTheirBeginningAndEmbeddingsTheirEnd) {
  const auto kept = [](int length, int truncate, int max_tokens, Pooling pooling) {
    Request request;
    for (int i = 0; i < length; ++i) request.prompt_token_ids.push_back(i % 50);
    request.truncate_prompt_tokens = truncate;
    request.sampling.max_tokens = max_tokens;
    request.pooling = pooling;
    const auto built = build(std::move(request));
    EXPECT_TRUE(built.ok()) << built.status().message();
    const Sequence& sequence = built.value().front()->sequence;
    const bool pools = pooling != Pooling::kNone;
    EXPECT_EQ(sequence.tokens.back(), ((pools ? sequence.prompt_len : length) - 1) % 50);
    return sequence.prompt_len;
  };
  EXPECT_EQ(kept(30, 10, 5, Pooling::kNone), 10);
  EXPECT_EQ(kept(8, 10, 5, Pooling::kNone), 8);
  EXPECT_EQ(kept(300, -1, 5, Pooling::kNone), 95);
  EXPECT_EQ(kept(300, -1, 99, Pooling::kNone), 1);
  EXPECT_EQ(kept(300, -1, 100, Pooling::kNone), 99);
  EXPECT_EQ(kept(300, -1, INT_MAX, Pooling::kNone), 99);
  EXPECT_EQ(kept(300, -1, 5, Pooling::kMean), 100);
  Request all = request_of(300);
  all.truncate_prompt_tokens = 100;
  EXPECT_NE(build(std::move(all)).status().message().find("100 tokens >"), std::string::npos);
}

// Tokenizers of models that read texts from both ends put marks around them.
TEST(RequestBuilder, LongTextsKeepTheMarksAroundThem) {
  RequestLimits limits = kBuilderLimits;
  limits.engine.bidirectional = true;
  const auto kept = [&](int truncate) {
    Request request;
    request.prompt_token_ids = {2, 11, 12, 13, 14, 3};
    request.truncate_prompt_tokens = truncate;
    request.pooling = Pooling::kCls;
    const auto built = build(std::move(request), 0, limits);
    EXPECT_TRUE(built.ok()) << built.status().message();
    return built.value().front()->sequence.tokens;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(kept(4), (Ids{2, 11, 12, 3}));
  EXPECT_EQ(kept(1), (Ids{2}));
  EXPECT_EQ(kept(9), (Ids{2, 11, 12, 13, 14, 3}));
}

TEST(RequestBuilder, EitherEndIsCut) {
  const auto kept = [](TruncationSide side, Pooling pooling) {
    Request request;
    request.prompt_token_ids = {11, 12, 13, 14, 15};
    request.truncate_prompt_tokens = 2;
    request.truncation_side = side;
    request.pooling = pooling;
    request.sampling.max_tokens = 1;
    const auto built = build(std::move(request));
    EXPECT_TRUE(built.ok()) << built.status().message();
    return built.value().front()->sequence.tokens;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(kept(TruncationSide::kLeft, Pooling::kNone), (Ids{14, 15}));
  EXPECT_EQ(kept(TruncationSide::kRight, Pooling::kNone), (Ids{11, 12}));
  EXPECT_EQ(kept(TruncationSide::kLeft, Pooling::kMean), (Ids{14, 15}));
  EXPECT_EQ(kept(TruncationSide::kAuto, Pooling::kMean), (Ids{11, 12}));
}

}  // namespace
}  // namespace foretoken
