#include "kernels/rows/stream_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

TEST(StreamMath, FactorsAreWeightedTurnsOfTheRow) {
  const float weights[] = {1, 2, 3, -1}, routed[] = {0.5f, -8};
  const float activated = 0;
  MixStreamsArgs args{};
  args.num_streams = 2;
  args.scale = 0.5f;
  args.weights = weights;
  EXPECT_EQ(num_stream_factors(args), 4);
  const double first = std::tanh(0.25), second = std::tanh(-4.0);
  EXPECT_NEAR(stream_factor(args, routed, 0), first + 2 * second, 1e-6);
  EXPECT_NEAR(stream_factor(args, routed, 1), 3 * first - second, 1e-6);
  args.activated = &activated;
  EXPECT_EQ(num_stream_factors(args), 2);
  EXPECT_NEAR(stream_factor(args, routed, 1), 1 + 3 * first - second, 1e-6);
}

}  // namespace
}  // namespace foretoken
