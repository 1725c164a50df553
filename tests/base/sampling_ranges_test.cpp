#include "base/sampling_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foretoken {
namespace {

struct Field {
  float SamplingParams::* member;
  const char* name;
  float low;
  float high;
};

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Field kFields[] = {
    {&SamplingParams::temperature, "temperature", 0, 1e6f},
    {&SamplingParams::top_p, "top_p", 1e-6f, 1},
    {&SamplingParams::min_p, "min_p", 0, 1},
    {&SamplingParams::presence_penalty, "presence_penalty", -2, 2},
    {&SamplingParams::frequency_penalty, "frequency_penalty", -2, 2},
    {&SamplingParams::repetition_penalty, "repetition_penalty", 1e-6f, 1e6f}};

TEST(SamplingRanges, EndsAreInAndWhatIsBeyondIsNamed) {
  for (const Field& field : kFields) {
    for (const float value : {field.low, field.high}) {
      SamplingParams sampling;
      sampling.*field.member = value;
      EXPECT_TRUE(check_sampling_numbers(sampling).ok()) << field.name << " " << value;
    }
    for (const float value : {field.low - 0.5f, kInf, -kInf, std::nanf("")}) {
      SamplingParams sampling;
      sampling.*field.member = value;
      const Status status = check_sampling_numbers(sampling);
      EXPECT_EQ(status.message().rfind(std::string(field.name) + " is ", 0), 0u) << value;
      EXPECT_NE(status.message().find("; it must be "), std::string::npos) << status.message();
    }
  }
}

TEST(SamplingRanges, TopKHasTwoWaysToBeOff) {
  for (const int top_k : {-1, 0, 1, 1000000}) {
    SamplingParams sampling;
    sampling.top_k = top_k;
    EXPECT_TRUE(check_sampling_numbers(sampling).ok()) << top_k;
  }
  SamplingParams sampling;
  sampling.top_k = -2;
  EXPECT_EQ(check_sampling_numbers(sampling).message().rfind("top_k is -2", 0), 0u);
}

}  // namespace
}  // namespace foretoken
