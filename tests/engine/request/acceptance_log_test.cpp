#include "engine/request/acceptance_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

using std::chrono::seconds;

class AcceptanceLogTest : public testing::Test {
 protected:
  const AcceptanceLog::Clock::time_point start_{seconds(100)};
  std::vector<std::string> lines_;
  AcceptanceLog log_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(AcceptanceLogTest, WithoutDraftsThereIsNothingToTell) {
  log_.add(0, 0);
  EXPECT_FALSE(log_.due().has_value());
  log_.write_when_due(start_ + seconds(1000));
  EXPECT_TRUE(lines_.empty());
}

TEST_F(AcceptanceLogTest, DisabledItTellsNothing) {
  log_.disable();
  log_.add(3, 2);
  EXPECT_FALSE(log_.due().has_value());
}

TEST_F(AcceptanceLogTest, SaysWhatVllmSays) {
  log_.add_at(start_, 3, 3);
  log_.add_at(start_ + seconds(1), 3, 1);
  log_.add_at(start_ + seconds(2), 1, 0);
  EXPECT_EQ(log_.due(), start_ + seconds(10));
  log_.write_when_due(start_ + seconds(9));
  EXPECT_TRUE(lines_.empty());
  log_.write_when_due(start_ + seconds(10));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0],
            "SpecDecoding metrics: Mean acceptance length: 2.33, Accepted throughput: 0.40 "
            "tokens/s, Drafted throughput: 0.70 tokens/s, Accepted: 4 tokens, Drafted: 7 tokens, "
            "Per-position acceptance rate: 0.667, 0.500, 0.500, Avg Draft acceptance rate: 57.1%");
}

TEST_F(AcceptanceLogTest, EachLineTellsOfItsOwnDrafts) {
  log_.add_at(start_, 2, 2);
  log_.write_when_due(start_ + seconds(10));
  log_.write_when_due(start_ + seconds(30));
  EXPECT_EQ(lines_.size(), 1u);
  log_.add_at(start_ + seconds(50), 1, 0);
  EXPECT_EQ(log_.due(), start_ + seconds(60));
  log_.write_when_due(start_ + seconds(60));
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_NE(lines_[1].find("Drafted: 1 tokens, Per-position acceptance rate: 0.000,"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
