#include "config/sampling_field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "config/sampling_fields.h"

namespace foretoken {
namespace {

TEST(SamplingField, RangesAreOfTheNumbersPrecision) {
  const SamplingRange range = {1e-6, 1};
  EXPECT_TRUE(range.holds(1e-6f)) << "which is a little less than 1e-6";
  EXPECT_TRUE(range.holds(1.0));
  EXPECT_FALSE(range.holds(std::nanf("")));
  EXPECT_FALSE((SamplingRange{0, 1, true}.holds(0.0f)));
  EXPECT_TRUE((SamplingRange{0, 1, true}.holds(1)));
  EXPECT_FALSE(SamplingRange().is_set());
}

TEST(SamplingField, MembersAreVisitedToReadAndToWrite) {
  SamplingParams sampling;
  visit_sampling_member(*find_sampling_field("min_p"), sampling, [](auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, float>) value = 0.5f;
  });
  EXPECT_EQ(sampling.min_p, 0.5f);
}

}  // namespace
}  // namespace foretoken
