#include "spec/batch_turnover.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(BatchTurnover, ABatchThatCameTogetherIsClosed) {
  BatchTurnover batch;
  for (int round = 0; round < 3; ++round) {
    const auto before = static_cast<uint64_t>(round * 64);
    batch.note(before + 10, 10);
    for (int num = 20; num <= 60; num += 10) batch.note(before + static_cast<uint64_t>(num), num);
    batch.note(before + 64, 64);
    for (int step = 0; step < 300; ++step) {
      batch.note(before + 64, step < 200 ? 64 : 20);
      EXPECT_FALSE(batch.is_open()) << round << ' ' << step;
    }
  }
}

TEST(BatchTurnover, ItIsOpenWhileRequestsTakePlaces) {
  BatchTurnover batch;
  uint64_t num_added = 8;
  batch.note(num_added, 8);
  for (int step = 0; step < 40; ++step) batch.note(num_added, 8);
  EXPECT_FALSE(batch.is_open());
  batch.note(++num_added, 8);  // one ended in that step
  EXPECT_TRUE(batch.is_open());
  for (int step = 0; step < 300; ++step) {
    batch.note(num_added, 8);
    ASSERT_TRUE(batch.is_open()) << "nobody ended since";
  }
  for (int step = 0; step < 10; ++step) batch.note(num_added, 7);
  EXPECT_TRUE(batch.is_open()) << "the client takes a while";
  batch.note(++num_added, 8);
  for (int step = 0; step < 40; ++step) batch.note(num_added, 7);
  EXPECT_FALSE(batch.is_open()) << "nobody comes";
}

}  // namespace
}  // namespace foretoken
