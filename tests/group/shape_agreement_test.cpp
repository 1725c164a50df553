#include "group/shape_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "group/socket_link.h"
#include "link_contract.h"
#include "socket_pairs.h"

namespace foretoken::group {
namespace {

using Next = AgreedShape::Next;

TEST(ShapeAgreement, TakesTheMostOfAll) {
  StepShapeWish one{.rows = 8}, two{.rows = 2};
  one.drafts[0] = {1, 8, 2};
  two.drafts[0] = {4, 0, 1};
  two.drafts[3] = {0, 4, 0};
  const AgreedShape agreed = agree({one, two, {}});
  EXPECT_EQ(agreed.next, Next::kRun);
  EXPECT_EQ(agreed.shape.rows, 8u);
  EXPECT_EQ(agreed.shape.drafts[0], (DraftPassesWish{4, 8, 2}));
  EXPECT_EQ(agreed.shape.drafts[1], (DraftPassesWish{}));
  EXPECT_EQ(agreed.shape.drafts[3], (DraftPassesWish{0, 4, 0}));
}

TEST(ShapeAgreement, TwoLanesWhereAllWithRowsWantThem) {
  const StepShapeWish wide{.rows = 16, .lane_rows = 8}, narrow{.rows = 8, .lane_rows = 4};
  EXPECT_EQ(agree({wide, narrow}).shape.lane_rows, 8u);
  EXPECT_EQ(agree({wide, {}}).shape.lane_rows, 8u);
  EXPECT_EQ(agree({wide, {.rows = 1}}).shape.lane_rows, 0u);
}

TEST(ShapeAgreement, SleepsAndEndsOnlyTogether) {
  EXPECT_EQ(agree({{}, {}}).next, Next::kSleep);
  EXPECT_EQ(agree({{.wants_end = true}, {}}).next, Next::kSleep);
  EXPECT_EQ(agree({{.wants_end = true}, {.wants_end = true}}).next, Next::kEnd);
  EXPECT_EQ(agree({{.wants_end = true}, {.has_work = true}}).next, Next::kWait);
  EXPECT_EQ(agree({{.wants_end = true}, {.rows = 1, .wants_end = true}}).next, Next::kRun);
}

// Who has given its memory away holds the others, whatever they want.
TEST(ShapeAgreement, RestsOnlyTogether) {
  const StepShapeWish wants{.wants_rest = true}, rests{.rests = true};
  EXPECT_EQ(agree({wants, {}}).next, Next::kSleep);
  EXPECT_EQ(agree({wants, {.rows = 2}}).next, Next::kRun);
  EXPECT_EQ(agree({wants, {.has_work = true, .wants_rest = true}}).next, Next::kWait);
  EXPECT_EQ(agree({wants, wants}).next, Next::kRest);
  EXPECT_EQ(agree({rests, {.rows = 2}}).next, Next::kRest);
  EXPECT_EQ(agree({rests, {.wants_end = true}}).next, Next::kRest);
}

// A layer that ranks share: an exchange whose size is the padded number of rows. Ranks whose shapes
// differed would exchange other sizes, and so wrong bytes, or hang.
Status run_shared_layer(RankLink& link, const AgreedShape& agreed, uint32_t step) {
  uint32_t passes = 0;
  for (const DraftPassesWish& drafts : agreed.shape.drafts) {
    passes += drafts.catch_up_rows > 0 ? std::max(drafts.num_draft_tokens, 1u) : 0;
  }
  for (uint32_t pass = 0; pass <= passes; ++pass) {
    const uint32_t word = step * 131 + pass;
    std::vector<uint32_t> mine(agreed.shape.rows + 1, word);
    std::vector<uint32_t> all(mine.size() * static_cast<std::size_t>(link.size()));
    FT_RETURN_IF_ERROR(link.all_gather(std::as_bytes(std::span(mine)),
                                       std::as_writable_bytes(std::span(all)), "shared layer"));
    for (const uint32_t got : all) EXPECT_EQ(got, word);
  }
  return {};
}

// Random bursts of work on each rank, idle times, and an end that each rank wants at its own time.
void live(RankLink& shapes, RankLink& layer, unsigned seed, int* num_idle_runs) {
  std::mt19937 random(seed);
  ShapeAgreement agreement(shapes);
  int left = 0;
  for (uint32_t step = 0;; ++step) {
    if (step < 400 && random() % 20 == 0) left = static_cast<int>(random() % 30);
    StepShapeWish mine{.wants_end = step >= 300};
    if (left > 0) {
      mine.rows = 1u << random() % 6;
      mine.has_work = true;
      mine.drafts[random() % kMaxDrafters] = {static_cast<uint32_t>(random() % 4), 1, 1};
      --left;
    }
    Result<AgreedShape> agreed = agreement.next(mine, step);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    if (agreed.value().next == Next::kEnd) return;
    if (agreed.value().next != Next::kRun) continue;
    EXPECT_GE(agreed.value().shape.rows, mine.rows);
    if (mine.rows == 0) ++*num_idle_runs;
    ASSERT_TRUE(run_shared_layer(layer, agreed.value(), step).ok());
  }
}

TEST(ShapeAgreement, RanksWithASharedLayerNeverPartWays) {
  constexpr int kSize = 4;
  auto of_shapes = connected(kSize);
  auto of_layer = connected(kSize);
  std::vector<std::unique_ptr<SocketLink>> shapes, layers;
  for (int rank = 0; rank < kSize; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    shapes.push_back(std::make_unique<SocketLink>(share(rank, kSize), std::move(of_shapes[at])));
    layers.push_back(std::make_unique<SocketLink>(share(rank, kSize), std::move(of_layer[at])));
  }
  std::vector<int> num_idle_runs(kSize);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      live(*shapes[rank], *layers[rank], static_cast<unsigned>(rank + 1), &num_idle_runs[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // The test is worth nothing where nobody was idle while others worked.
  for (const int runs : num_idle_runs) EXPECT_GT(runs, 0);
}

TEST(ShapeAgreement, TheFirstReasonOfAnEndIsTold) {
  auto pairs = connected(2);
  SocketLink zero(share(0, 2), std::move(pairs[0])), one(share(1, 2), std::move(pairs[1]));
  zero.abort(internal_error("rank 1 has lost its GPU"));
  const Status told = ShapeAgreement(zero).fail(internal_error("the queue has ended"));
  EXPECT_NE(told.message().find("rank 1 has lost its GPU"), std::string::npos) << told.message();
  const Status own = ShapeAgreement(one).fail(internal_error("out of memory"));
  EXPECT_NE(own.message().find("out of memory"), std::string::npos) << own.message();
}

}  // namespace
}  // namespace foretoken::group
