#include "kernels/rows/see_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/test_device.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class SeeSpansTest : public DeviceTest {
 protected:
  // Of rows that begin with -5 each.
  Ids seen(const std::vector<SpanState>& spans, const Ids& positions, int32_t max_rows) {
    const auto rows = static_cast<int32_t>(positions.size());
    Ids padded = positions;
    padded.resize(static_cast<size_t>(max_rows));
    int32_t* out = to_device(Ids(static_cast<size_t>(max_rows), -5));
    see_spans(queue(), {.counts = to_device(std::vector<StepCounts>{
                            {rows, 0, static_cast<int32_t>(spans.size()), 0}}),
                        .spans = to_device(spans),
                        .positions = to_device(padded),
                        .last_seen = out,
                        .max_rows = max_rows});
    return read(out, static_cast<size_t>(max_rows));
  }
};

TEST_F(SeeSpansTest, RowsSeeTheEndOfTheirSpan) {
  const std::vector<SpanState> spans = {
      {2, 0, 3, 0, 0, 0, 0}, {0, 3, 0, 0, 0, 0, 0}, {1, 3, 2, 0, 0, 0, 0}};
  EXPECT_EQ(seen(spans, {0, 1, 2, 7, 8}, 8), (Ids{2, 2, 2, 8, 8, 0, 0, 0}));
}

TEST_F(SeeSpansTest, NothingIsLive) { EXPECT_EQ(seen({{}}, {}, 3), (Ids{0, 0, 0})); }

}  // namespace
}  // namespace foretoken
