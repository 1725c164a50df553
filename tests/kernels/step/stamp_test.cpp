#include "kernels/step/stamp.h"

#include "kernels/step/delay.h"
#include "kernels/step/publish.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

class StampTest : public StepTest {};

// Publish ends a step unless drafts follow; each step writes its own entry.
TEST_F(StampTest, TellsTheTimesOfTheStepPublishedLast) {
  push(StepData{sizes_});
  const ResultLimits& limits = sizes_.result_limits;
  const int64_t entry_bytes = result_bytes(limits);
  char* ring =
      allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  auto* stamps = allocate<StepStamps>(kStepRingSize, MemoryKind::kPinned);
  constexpr uint64_t kStep = kStepRingSize + 2;
  uint64_t* step = to_device(std::vector<uint64_t>{kStep});
  publish(queue(), {step, result_, limits, 0, 0, ring, entry_bytes, word, stamps});
  drain();
  const StepStamps published = stamps[2];
  EXPECT_GT(published.published_ns, 0);
  EXPECT_EQ(published.end_ns, published.published_ns);
  delay(queue(), {3000});
  stamp(queue(), {step, stamps});
  drain();
  EXPECT_EQ(stamps[2].published_ns, published.published_ns);
  EXPECT_GE(stamps[2].end_ns, published.published_ns + 2'900'000);
  for (const int other : {0, 1, 3, kStepRingSize - 1}) EXPECT_EQ(stamps[other].end_ns, 0);
}

}  // namespace
}  // namespace foretoken
