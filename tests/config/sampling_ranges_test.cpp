#include "config/sampling_ranges.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <limits>
#include <type_traits>

#include "config/sampling_fields.h"

namespace foretoken {
namespace {

void expect_out_of_range(const SamplingField& field, const SamplingParams& sampling) {
  const Status status = check_sampling_ranges(sampling);
  EXPECT_TRUE(status.message().starts_with(std::string(field.name) + " is ")) << field.name;
  EXPECT_NE(status.message().find("; it must be "), std::string::npos) << status.message();
}

TEST(SamplingRanges, EndsAreInAndWhatIsBeyondIsNamed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  int count = 0;
  for (const SamplingField& field : sampling_fields()) {
    visit_sampling_member(field, SamplingParams(), [&](const auto& is) {
      if constexpr (std::is_same_v<std::decay_t<decltype(is)>, float>) {
        ++count;
        const auto low = static_cast<float>(field.range.low);
        const auto high = static_cast<float>(field.range.high);
        SamplingParams sampling;
        auto& value = sampling.*std::get<float SamplingParams::*>(field.member);
        for (const float in : {field.range.above_low ? low + 1e-6f : low, high}) {
          value = in;
          EXPECT_TRUE(check_sampling_ranges(sampling).ok()) << field.name << " " << in;
        }
        for (const float out : {low - 0.5f, kInf, -kInf, std::nanf("")}) {
          value = out;
          expect_out_of_range(field, sampling);
        }
      }
    });
  }
  EXPECT_GE(count, 6);
}

TEST(SamplingRanges, IntegersToo) {
  for (const SamplingField& field : sampling_fields()) {
    if (!std::holds_alternative<int SamplingParams::*>(field.member)) continue;
    SamplingParams sampling;
    sampling.max_tokens = INT_MAX;
    auto& value = sampling.*std::get<int SamplingParams::*>(field.member);
    value = static_cast<int>(field.range.low);
    EXPECT_TRUE(check_sampling_ranges(sampling).ok()) << field.name;
    --value;
    expect_out_of_range(field, sampling);
    if (field.range.high == INT_MAX) continue;
    value = static_cast<int>(field.range.high) + 1;
    expect_out_of_range(field, sampling);
  }
}

TEST(SamplingRanges, SentencesSayWhatIsMeant) {
  SamplingParams sampling;
  sampling.top_k = -2;
  EXPECT_EQ(check_sampling_ranges(sampling).message(),
            "top_k is -2; it must be -1 or 0 (off), or at least 1");
  sampling = {};
  sampling.min_tokens = 17;
  EXPECT_EQ(check_sampling_ranges(sampling).message(),
            "min_tokens is 17; it must be in [0, max_tokens], which is 16");
  sampling.max_tokens = 0;
  EXPECT_EQ(check_sampling_field(*find_sampling_field("max_tokens"), sampling, "max_new_tokens")
                .message(),
            "max_new_tokens is 0; it must be at least 1");
}

TEST(SamplingRanges, ListsAndWhatExcludesEachOther) {
  using Change = void (*)(SamplingParams&);
  const std::pair<Change, const char*> wrong[] = {
      {[](SamplingParams& s) { s.stop = {"a", ""}; }, "stop must not hold an empty string"},
      {[](SamplingParams& s) { s.bad_words = {""}; }, "bad_words must not hold an empty string"},
      {[](SamplingParams& s) { s.allowed_token_ids.emplace(); }, "allowed_token_ids must not be"},
      {[](SamplingParams& s) { s.logit_bias = {{3, 101}}; }, "logit_bias of token id 3 is 101"},
      {[](SamplingParams& s) { s.logit_bias = {{-1, 1}}; }, "logit_bias is -1"},
      {[](SamplingParams& s) { s.prompt_logprobs = -2; }, "prompt_logprobs is -2"},
      {[](SamplingParams& s) {
         s.n = 2;
         s.temperature = 0;
       },
       "n is 2, but with temperature 0"},
      {[](SamplingParams& s) {
         s.stop = {"a"};
         s.detokenize = false;
       },
       "stop strings need text"}};
  for (const auto& [change, start] : wrong) {
    SamplingParams sampling;
    change(sampling);
    EXPECT_TRUE(check_sampling_ranges(sampling).message().starts_with(start))
        << check_sampling_ranges(sampling).message();
  }
}

TEST(SamplingRanges, TimesHaveOneRange) {
  Request request;
  EXPECT_TRUE(check_times(request).ok());
  request.timeout_seconds = -1;
  EXPECT_TRUE(check_times(request).message().starts_with("timeout_seconds is -1"));
}

}  // namespace
}  // namespace foretoken
