#include "kernels/rows/see_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/test_device.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class SeeSpansTest : public DeviceTest {
 protected:
  // Of rows that begin with -5 each; `slots` and `positions` of the live ones.
  Ids seen(Ids slots, Ids positions, int32_t max_rows) {
    const auto rows = static_cast<int32_t>(positions.size());
    slots.resize(static_cast<size_t>(max_rows), 9);
    positions.resize(static_cast<size_t>(max_rows));
    int32_t* out = to_device(Ids(static_cast<size_t>(max_rows), -5));
    see_spans(queue(), {.counts = to_device(std::vector<StepCounts>{{rows, 0, 0, 0}}),
                        .row_slot = to_device(slots),
                        .positions = to_device(positions),
                        .last_seen = out,
                        .max_rows = max_rows});
    return read(out, static_cast<size_t>(max_rows));
  }
};

TEST_F(SeeSpansTest, RowsSeeTheEndOfTheirSpan) {
  EXPECT_EQ(seen({2, 2, 2, 1, 1}, {0, 1, 2, 7, 8}, 8), (Ids{2, 2, 2, 8, 8, 0, 0, 0}));
  EXPECT_EQ(seen({0, 4, 3}, {0, 0, 0}, 3), (Ids{0, 0, 0}));
}

TEST_F(SeeSpansTest, ManyRowsOfOneSlot) {
  Ids slots(299, 5), positions, wanted(299, 298);
  for (int32_t i = 0; i < 299; ++i) positions.push_back(i);
  slots.push_back(0), positions.push_back(41), wanted.push_back(41);
  EXPECT_EQ(seen(slots, positions, 300), wanted);
}

TEST_F(SeeSpansTest, NothingIsLive) { EXPECT_EQ(seen({}, {}, 3), (Ids{0, 0, 0})); }

}  // namespace
}  // namespace foretoken
