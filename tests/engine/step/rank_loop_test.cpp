#include "engine/step/rank_loop.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/engine_parts.h"
#include "group/local_link.h"
#include "support/dialled_set.h"
#include "support/no_threads.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// The loop of a rank above 0 whose step has no collectives, beside a feed that the test writes.
class RankLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = EngineParts::make(test::DialledSet::of().target(), 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    parts_ = std::move(made).value();
    auto links = group::make_local_links(2);
    first_ = std::make_unique<Ranks>(std::move(links[0]));
    second_ = std::make_unique<Ranks>(std::move(links[1]));
    loop_ = std::make_unique<RankLoop>(
        RankLoop::Parts{*parts_->queue, *parts_->runner, *parts_->memory, *second_});
  }

  std::unique_ptr<EngineParts> parts_;
  std::unique_ptr<Ranks> first_;
  std::unique_ptr<Ranks> second_;
  std::unique_ptr<RankLoop> loop_;
};

TEST_F(RankLoopTest, EndsWithThePlans) {
  PlanFeed feed(*first_, parts_->memory->limits());
  ASSERT_TRUE(feed.end().ok());
  EXPECT_TRUE(loop_->run().ok());
}

TEST_F(RankLoopTest, EndsWithTheGroup) {
  std::thread ending([&] { first_->abort({StatusCode::kInternal, "rank 0 is tired"}); });
  const Status status = loop_->run();
  ending.join();
  EXPECT_NE(status.message().find("rank 0 is tired"), std::string::npos) << status.message();
}

TEST_F(RankLoopTest, WithoutAThreadItEndsTheGroup) {
  const test::NoThreads none;
  EXPECT_NE(loop_->run().message().find("ulimit -u"), std::string::npos);
  const auto told = first_->least(1, "a number");
  EXPECT_NE(told.status().message().find("ulimit -u"), std::string::npos);
}

// A plan of a step that the device is not at is its queue's error, which ends the group.
TEST_F(RankLoopTest, AFailedQueueEndsTheGroup) {
  PlanFeed feed(*first_, parts_->memory->limits());
  const PlanView entry = parts_->runner->entry(0);
  *entry.header = {.step = 5,
                   .num_spans = 1,
                   .num_inits = 0,
                   .num_block_updates = 0,
                   .num_tokens = 0,
                   .num_words = 0};
  entry.spans[0] = {};
  StepPlan plan;
  plan.num_rows = 1;
  ASSERT_TRUE(feed.begin(0, parts_->runner->shape_of(plan), entry).ok());
  EXPECT_FALSE(loop_->run().ok());
  EXPECT_FALSE(first_->least(1, "a number").ok());
}

}  // namespace
}  // namespace foretoken
