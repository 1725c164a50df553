#include "engine/request/parameters/slot_params.h"

#include <gtest/gtest.h>

#include <bit>

#include "kernels/sampling/logprobs.h"
#include "sched/step_plan.h"

namespace foretoken {
namespace {

const RequestLimits kSlotLimits{.max_model_len = 100,
                                .vocab_size = 70,
                                .drafters = {},
                                .max_logprobs = 10,
                                .eos_token_ids = {}};
constexpr SlotLengths kLengths{.prompt_len = 5, .max_len = 21, .max_draft_tokens = 3};

SlotWishes wishes_of(const Request& request, const SlotIds& ids = {}) {
  auto wishes = slot_wishes(request, kLengths, ids, kSlotLimits, 0);
  EXPECT_TRUE(wishes.ok()) << wishes.status().message();
  return std::move(wishes).value();
}

TEST(SlotParams, APlainRequestAsksForNothing) {
  const SlotWishes wishes = wishes_of({});
  EXPECT_EQ(wishes.features, 0u);
  EXPECT_TRUE(wishes.init_words.empty());
  EXPECT_FALSE(shapes_logits(wishes.params));
  EXPECT_EQ(wishes.params.num_logprobs, kNoLogprobs);
  EXPECT_EQ(wishes.params.prompt_len, 5);
  EXPECT_EQ(wishes.params.max_len, 21);
  EXPECT_EQ(wishes.params.max_draft_tokens, 3);
}

TEST(SlotParams, TheListsFollowOneAnother) {
  Request request;
  request.sampling.logit_bias = {{7, 1.5f}, {9, -2.0f}};
  request.sampling.allowed_token_ids = {{0, 33, 69}};
  const SlotWishes wishes = wishes_of(request, {{1, 8, 2, 4, 5}, {44, 45}});
  EXPECT_EQ(wishes.params.num_logit_bias, 2);
  EXPECT_EQ(wishes.params.num_bad_word_ints, 5);
  EXPECT_EQ(wishes.params.has_allowed_ids, 1);
  EXPECT_EQ(wishes.params.num_prediction, 2);
  const std::vector<uint32_t> expected = {7,  std::bit_cast<uint32_t>(1.5f),
                                          9,  std::bit_cast<uint32_t>(-2.0f),
                                          1,  8,
                                          2,  4,
                                          5,  1u,
                                          2u, 1u << 5,
                                          44, 45};
  EXPECT_EQ(wishes.init_words, expected);
  EXPECT_EQ(wishes.features, uint32_t{kShapesLogits});
}

TEST(SlotParams, EachFieldAsksForItsFeature) {
  const auto features_of = [](const auto& change) {
    Request request;
    change(request);
    return wishes_of(request).features;
  };
  EXPECT_EQ(features_of([](Request& r) { r.sampling.presence_penalty = 1; }), kShapesLogits);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.frequency_penalty = 1; }), kShapesLogits);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.repetition_penalty = 2; }), kShapesLogits);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.min_p = 0.5f; }), 0u);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.logprobs = 0; }), kWantsLogprobs);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.prompt_logprobs = 0; }), kScoresPrompt);
  EXPECT_EQ(features_of([](Request& r) { r.pooling = Pooling::kLast; }), kPools);
  EXPECT_EQ(features_of([](Request& r) { r.sampling.logits_processors = {nullptr}; }),
            kHasProcessors);
}

TEST(SlotParams, TheDeviceGivesAsManyAlternativesAsEitherListWants) {
  Request request;
  request.sampling.logprobs = 2;
  request.sampling.prompt_logprobs = 5;
  EXPECT_EQ(wishes_of(request).params.num_logprobs, 5);
  request.sampling.logprobs = -1;
  EXPECT_EQ(wishes_of(request).params.num_logprobs, 70);
  request.sampling.processed_logprobs = true;
  EXPECT_TRUE(wants_processed(wishes_of(request).params));
  EXPECT_EQ(num_alternatives(wishes_of(request).params), 70);
  request.sampling.logprobs = request.sampling.prompt_logprobs = std::nullopt;
  EXPECT_EQ(wishes_of(request).params.num_logprobs, kNoLogprobs);
  EXPECT_FALSE(wants_processed(wishes_of(request).params));
}

TEST(SlotParams, PoolingHasItsDeviceName) {
  const auto pooling_of = [](Pooling pooling) {
    Request request;
    request.pooling = pooling;
    return static_cast<DevicePooling>(wishes_of(request).params.pooling);
  };
  EXPECT_EQ(pooling_of(Pooling::kNone), DevicePooling::kNone);
  EXPECT_EQ(pooling_of(Pooling::kCls), DevicePooling::kFirst);
  EXPECT_EQ(pooling_of(Pooling::kLast), DevicePooling::kLast);
  EXPECT_EQ(pooling_of(Pooling::kMean), DevicePooling::kMean);
  EXPECT_EQ(pooling_of(Pooling::kMax), DevicePooling::kMax);
  EXPECT_EQ(pooling_of(Pooling::kMeanSqrtLen), DevicePooling::kMeanSqrtLen);
  EXPECT_EQ(pooling_of(Pooling::kWeightedMean), DevicePooling::kWeightedMean);
  EXPECT_EQ(pooling_of(Pooling::kAuto), DevicePooling::kLast) << "limits say nothing else";
}

}  // namespace
}  // namespace foretoken
