#include "engine/measure/learned_rates_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/files/text_file.h"
#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "spec/learned_rates_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class LearnedRatesKeeperTest : public DialledEngine {
 protected:
  void SetUp() override {
    auto parts = EngineParts::make(folder(), 3);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(parts).value();
  }

  void start(std::chrono::milliseconds period) {
    LearnedDrafter drafter;
    drafter.name = "ngram";
    drafter.max_draft_tokens = 3;
    auto keeper = LearnedRatesKeeper::start({.device = *parts_->device,
                                             .queue = *parts_->queue,
                                             .priors = parts_->memory->batch.priors,
                                             .policy = *parts_->policy},
                                            cache_, {drafter}, "a table", period);
    ASSERT_TRUE(keeper.ok()) << keeper.status().message();
    keeper_ = std::move(keeper).value();
  }

  // As a step would.
  void rate(int num_rated) {
    DraftRates prior{};
    prior.num_rated = num_rated;
    parts_->queue->copy(parts_->memory->batch.priors, &prior, sizeof(prior));
    ASSERT_TRUE(parts_->queue->drain().ok());
  }

  // -1: nothing is kept.
  int kept() const {
    const auto text = read_text_file(cache_.path());
    if (!text.ok()) return -1;
    const auto learned = parse_learned_rates(text.value(), "it");
    EXPECT_TRUE(learned.ok()) << learned.status().message();
    EXPECT_EQ(learned.value().step_times, "a table");
    return learned.value().drafters[0].prior.num_rated;
  }
  void await(int num_rated) const {
    while (kept() != num_rated) std::this_thread::yield();
  }

  const test::ScratchFolder scratch_;
  const LearnedRatesCache cache_{scratch_.path(), "a model", "of today"};
  std::unique_ptr<EngineParts> parts_;
  std::unique_ptr<LearnedRatesKeeper> keeper_;
};

TEST_F(LearnedRatesKeeperTest, WritesAtRestWhatIsNew) {
  start(std::chrono::hours(1));
  keeper_->rest();
  keeper_->note_step(1, 1);
  rate(7);
  keeper_->rest();
  await(7);
  rate(9);
  keeper_->rest();
  keeper_.reset();
  EXPECT_EQ(kept(), 7) << "no step ran since then";
}

// A copy that was asked for behind step 4 is there once step 5 is.
TEST_F(LearnedRatesKeeperTest, WritesUnderLoadWhenTheNextStepIsDone) {
  start(std::chrono::milliseconds(0));
  rate(5);
  keeper_->note_step(5, 4);
  keeper_->note_step(6, 5);
  EXPECT_EQ(kept(), -1);
  ASSERT_TRUE(parts_->queue->drain().ok());
  keeper_->note_step(7, 6);
  await(5);
}

TEST_F(LearnedRatesKeeperTest, TheEndWritesWhatIsKnown) {
  start(std::chrono::hours(1));
  rate(3);
  keeper_->finish();
  EXPECT_EQ(kept(), 3);
}

TEST_F(LearnedRatesKeeperTest, NothingIsKeptBeforeAnythingIsLearned) {
  start(std::chrono::milliseconds(0));
  keeper_->note_step(1, 1);
  keeper_->rest();
  keeper_->finish();
  EXPECT_EQ(kept(), -1);
}

}  // namespace
}  // namespace foretoken
