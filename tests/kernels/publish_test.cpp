#include "kernels/publish.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

class PublishTest : public StepTest {};

TEST_F(PublishTest, FillsTheRingAndCountsSteps) {
  push(StepData{sizes_});
  const int64_t entry_bytes = result_bytes(sizes_.limits);
  char* ring =
      allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  uint64_t* step = to_device(std::vector<uint64_t>{2});
  for (uint64_t n = 2; n < 2 + 2 * kStepRingSize; ++n) {
    std::vector<char> result(static_cast<size_t>(entry_bytes));
    const ResultView view = result_view(result.data());
    *view.header = {n, 2, 5};
    view.spans[0].slot = 3;
    view.spans[1].ids[kMaxDrafts] = static_cast<int32_t>(n) * 10;
    view.spans[2].slot = 77;  // beyond num_spans: not copied
    write(result_, result);
    publish(queue(), {step, result_, ring, entry_bytes, word});
    const Status status = queue().wait({word}, n + 1, std::chrono::seconds(20));
    ASSERT_TRUE(status.ok()) << status.message();
    const ResultView seen =
        result_view(ring + static_cast<int64_t>(n % kStepRingSize) * entry_bytes);
    EXPECT_EQ(seen.header->step, n);
    EXPECT_EQ(seen.header->num_rows, 5);
    EXPECT_EQ(seen.spans[0].slot, 3);
    EXPECT_EQ(seen.spans[1].ids[kMaxDrafts], static_cast<int32_t>(n) * 10);
    EXPECT_EQ(seen.spans[2].slot, 0);
    EXPECT_EQ(word->load(), n + 1);
  }
  EXPECT_EQ(read(step, 1)[0], 2u + 2 * kStepRingSize);
}

}  // namespace
}  // namespace foretoken
