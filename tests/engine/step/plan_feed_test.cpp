#include "engine/step/plan_feed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "group/local_link.h"
#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

constexpr PlanLimits kFeedLimits{4, 32, 8, 16};

// A ring entry with a few of everything.
struct Entry {
  Entry() : bytes(static_cast<size_t>(plan_bytes(kFeedLimits)) + 16) {
    view = plan_view(bytes.data(), kFeedLimits);
    *view.header = {.step = 9,
                    .num_spans = 2,
                    .num_inits = 1,
                    .num_block_updates = 3,
                    .num_tokens = 5,
                    .num_words = 4};
    for (int i = 0; i < 2; ++i) view.spans[i].slot = 10 + i;
    view.inits[0].len = 77;
    for (int i = 0; i < 3; ++i) view.block_updates[i].block = 20 + i;
    for (int i = 0; i < 5; ++i) view.tokens[i] = 30 + i;
    for (int i = 0; i < 4; ++i) view.words[i] = static_cast<uint32_t>(40 + i);
  }
  std::vector<char> bytes;
  PlanView view;
};

TEST(PlanFeed, TheLiveParts) {
  const Entry entry;
  const size_t size = live_plan_bytes(*entry.view.header);
  EXPECT_LT(size, max_plan_bytes(kFeedLimits));
  std::vector<std::byte> packed(size);
  pack_plan(entry.view, packed);
  std::vector<char> other(entry.bytes.size());
  const PlanView view = plan_view(other.data(), kFeedLimits);
  ASSERT_TRUE(unpack_plan(*entry.view.header, packed, kFeedLimits, view).ok());
  EXPECT_EQ(view.header->step, 9u);
  EXPECT_EQ(view.spans[1].slot, 11);
  EXPECT_EQ(view.inits[0].len, 77);
  EXPECT_EQ(view.block_updates[2].block, 22);
  EXPECT_EQ(view.tokens[4], 34);
  EXPECT_EQ(view.words[3], 43u);
}

TEST(PlanFeed, APlanBeyondTheLimitsIsAnError) {
  const Entry entry;
  std::vector<std::byte> packed(live_plan_bytes(*entry.view.header));
  pack_plan(entry.view, packed);
  std::vector<char> other(entry.bytes.size());
  PlanLimits tight = kFeedLimits;
  tight.max_block_updates = 2;
  EXPECT_FALSE(unpack_plan(*entry.view.header, packed, tight, plan_view(other.data(), tight)).ok());
  packed.pop_back();
  EXPECT_FALSE(
      unpack_plan(*entry.view.header, packed, kFeedLimits, plan_view(other.data(), kFeedLimits))
          .ok());
}

TEST(PlanFeed, ReachesEveryOtherRankAndEnds) {
  auto links = group::make_local_links(3);
  Ranks first(std::move(links[0]));
  PlanFeed feed(first, kFeedLimits);
  const Entry entry;
  StepShape shape;
  shape.max_rows = 8;
  shape.features = 3;
  ASSERT_TRUE(feed.begin(9, shape, entry.view).ok());
  ASSERT_TRUE(feed.end().ok());
  for (size_t rank : {1u, 2u}) {
    group::RankLink& link = link_of(links[rank], group::Lane::kPlans);
    ReceivedPlan plan;
    plan.packed.resize(max_plan_bytes(kFeedLimits));
    ASSERT_TRUE(receive_plan(link, &plan).ok());
    EXPECT_EQ(plan.message.step, 9u);
    EXPECT_EQ(plan.message.shape, shape);
    EXPECT_EQ(plan.message.kind, PlanMessage::Kind::kBegin);
    EXPECT_EQ(plan.message.num_bytes, live_plan_bytes(*entry.view.header));
    ASSERT_TRUE(receive_plan(link, &plan).ok());
    EXPECT_EQ(plan.message.kind, PlanMessage::Kind::kEnd);
  }
}

TEST(PlanFeed, MovesOfBlocksArriveInBothDirections) {
  auto links = group::make_local_links(2);
  Ranks first(std::move(links[0]));
  PlanFeed feed(first, kFeedLimits);
  StepPlan sent;
  sent.step = 5;
  sent.moves_out = {{.block = 3, .image = 1}};
  sent.moves_in = {{.block = 4, .image = 2, .parent = 3, .parent_epoch = 6, .epoch = 7},
                   {.block = 5, .image = 0}};
  ASSERT_TRUE(feed.moves(sent).ok());
  ReceivedPlan plan;
  plan.packed.resize(max_plan_bytes(kFeedLimits));
  ASSERT_TRUE(receive_plan(link_of(links[1], group::Lane::kPlans), &plan).ok());
  EXPECT_EQ(plan.message.kind, PlanMessage::Kind::kMoves);
  EXPECT_EQ(plan.message.step, 5u);
  EXPECT_EQ(plan.message.plan.num_spans, 1);
  ASSERT_EQ(plan.moves.size(), 3u);
  EXPECT_EQ(plan.moves[0].block, 3);
  EXPECT_EQ(plan.moves[1].parent_epoch, 6u);
  EXPECT_EQ(plan.moves[1].epoch, 7u);
  EXPECT_EQ(plan.moves[2].block, 5);
}

TEST(PlanFeed, MovesOfStatesArriveInBothDirections) {
  auto links = group::make_local_links(2);
  Ranks first(std::move(links[0]));
  PlanFeed feed(first, kFeedLimits);
  StepPlan sent;
  sent.step = 6;
  sent.states_out = {{.slot = 1, .snapshot = 9}};
  sent.states_in = {{.slot = 2, .snapshot = 8}};
  ASSERT_TRUE(feed.states(sent).ok());
  ReceivedPlan plan;
  plan.packed.resize(max_plan_bytes(kFeedLimits));
  ASSERT_TRUE(receive_plan(link_of(links[1], group::Lane::kPlans), &plan).ok());
  EXPECT_EQ(plan.message.kind, PlanMessage::Kind::kStates);
  EXPECT_EQ(plan.message.step, 6u);
  EXPECT_EQ(plan.message.plan.num_spans, 1);
  ASSERT_EQ(plan.states.size(), 2u);
  EXPECT_EQ(plan.states[0].snapshot, 9);
  EXPECT_EQ(plan.states[1].slot, 2);
}

TEST(PlanFeed, AFailureEndsTheOthers) {
  auto links = group::make_local_links(2);
  Ranks first(std::move(links[0]));
  PlanFeed feed(first, kFeedLimits);
  EXPECT_NE(feed.fail({StatusCode::kInternal, "the engine is gone"}).message().find("is gone"),
            std::string::npos);
  // The first reason stays.
  EXPECT_NE(feed.fail({StatusCode::kInternal, "another"}).message().find("is gone"),
            std::string::npos);
  ReceivedPlan plan;
  const Status status = receive_plan(link_of(links[1], group::Lane::kPlans), &plan);
  EXPECT_NE(status.message().find("the engine is gone"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
