#include "model/layer/stage_cut.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"

namespace foretoken {
namespace {

// Both sides name the same rows; what sends keeps them, and what receives gets the live ones.
TEST(StageCut, LiveRowsCross) {
  constexpr int32_t kRows = 4, kLive = 3, kColumns = 5;
  const LayerConfig behind{.blocks_before = 2};
  const auto links = group::make_local_links(2);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      const auto comm =
          device->make_communicator(link_of(own, group::Lane::kStages), {.max_row_bytes = 64})
              .value();
      const auto queue = device->make_queue().value();
      const bool sends = comm->rank() == 0;
      std::vector<float> x(kRows * kColumns, sends ? 1.5f : -1.0f);
      StepCounts counts{kLive, 0, 0, 0};
      const LayerRows rows{*queue, &counts, nullptr, nullptr, kRows};
      const StageCut cut{comm->handle(), behind, 7, sends};
      cut.cross(rows, x.data(), kColumns);
      ASSERT_TRUE(queue->drain().ok());
      for (int32_t i = 0; i < kRows * kColumns; ++i) {
        const bool is_live = i < kLive * kColumns;
        EXPECT_EQ(x[static_cast<size_t>(i)], sends || is_live ? 1.5f : -1.0f) << i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace foretoken
