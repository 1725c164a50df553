#include "kernels/experts/route_math.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

RouteExpertsArgs args_of(ExpertScore score, int top_k) {
  RouteExpertsArgs args{};
  args.score = score;
  args.lists.top_k = top_k;
  args.num_groups = 1;
  args.scale = 2;
  return args;
}

constexpr int32_t kIds[] = {1, 0};

TEST(RouteMath, WeightsOfChoices) {
  float plain[] = {0.5f, 0.25f};
  route_math::finish_weights(args_of(ExpertScore::kSoftmax, 2), kIds, plain);
  EXPECT_EQ(plain[0], 1.0f);
  EXPECT_EQ(plain[1], 0.5f);
  RouteExpertsArgs args = args_of(ExpertScore::kSigmoid, 2);
  args.normalised = 1;
  float normalised[] = {0.75f, 0.25f};
  route_math::finish_weights(args, kIds, normalised);
  EXPECT_FLOAT_EQ(normalised[0], 1.5f);
  // Nothing to divide by.
  float zeros[] = {0, 0};
  route_math::finish_weights(args, kIds, zeros);
  EXPECT_EQ(zeros[0], 0);
  float logits[] = {3, 3};
  route_math::finish_weights(args_of(ExpertScore::kSoftmaxOfChosen, 2), kIds, logits);
  EXPECT_EQ(logits[0], 1.0f);
  const float scales[] = {4, 0.5f};
  args.weight_scales = scales;
  float scaled[] = {0.75f, 0.25f};
  route_math::finish_weights(args, kIds, scaled);
  EXPECT_FLOAT_EQ(scaled[0], 0.75f);
  EXPECT_FLOAT_EQ(scaled[1], 2.0f);
}

TEST(RouteMath, LogitsRankWhereNothingIsAdded) {
  RouteExpertsArgs args = args_of(ExpertScore::kSoftmax, 2);
  EXPECT_EQ(route_math::rank_of(args, 0, 5, 0.1f), 5);
  const float correction[] = {1};
  args.correction = correction;
  EXPECT_EQ(route_math::rank_of(args, 0, 5, 0.25f), 1.25f);
  args.score = ExpertScore::kSoftmaxOfChosen;
  EXPECT_EQ(route_math::rank_of(args, 0, 5, 0.25f), 6);
  args = args_of(ExpertScore::kSigmoid, 2);
  args.num_groups = 2;
  EXPECT_EQ(route_math::rank_of(args, 0, 5, 0.25f), 5);
  args.groups = ExpertGroups::kBestTwo;
  EXPECT_EQ(route_math::rank_of(args, 0, 5, 0.25f), 0.25f);
  EXPECT_EQ(route_math::group_rank(args, 1, 2), 3);
}

TEST(RouteMath, FarFromTheLargest) {
  EXPECT_FALSE(route_math::is_far(9.9f, 10, 0.01f));
  EXPECT_TRUE(route_math::is_far(9.7f, 10, 0.01f));
  // Its own size counts where the largest is below zero.
  EXPECT_FALSE(route_math::is_far(-10.1f, -10, 0.01f));
  EXPECT_TRUE(route_math::is_far(-11, -10, 0.01f));
}

}  // namespace
}  // namespace foretoken
