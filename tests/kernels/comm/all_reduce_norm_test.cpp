#include "kernels/comm/all_reduce_norm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "support/random_data.h"

namespace foretoken {
namespace {

constexpr int kNormedRows = 9, kLiveNormed = 7, kNormedCols = 320;

// Memory of a rank, which the device's end gives back.
template <class T>
T* array_of(Device& device, const std::vector<T>& values) {
  auto* memory = static_cast<T*>(device.allocate(values.size() * sizeof(T), MemoryKind::kPinned));
  std::memcpy(memory, values.data(), values.size() * sizeof(T));
  return memory;
}

std::vector<float> floats(int seed, size_t count) {
  return random_floats(count, static_cast<uint64_t>(seed), 1.0f);
}

struct Found {
  std::vector<float> residual;
  std::vector<uint16_t> out;
  bool operator==(const Found&) const = default;
};

// What a rank has after the op, or after the two that it stands for.
Found run_on(const group::LaneLinks& own, bool fused, float scale) {
  auto device = open_device(DeviceType::kCpu, 0, 1).value();
  auto comm =
      device->make_communicator(link_of(own, group::Lane::kCollectives), {.max_row_bytes = 4096})
          .value();
  auto queue = device->make_queue().value();
  const size_t count = size_t{kNormedRows} * kNormedCols;
  AllReduceNormArgs args{.comm = comm->handle(),
                         .counts = array_of<StepCounts>(*device, {{kLiveNormed, 0, 0, 0}}),
                         .delta = array_of(*device, floats(comm->rank() + 1, count)),
                         .residual = array_of(*device, floats(50, count)),
                         .weight = array_of(*device, floats(51, kNormedCols)),
                         .out = array_of(*device, std::vector<uint16_t>(count, 9)),
                         .max_rows = kNormedRows,
                         .hidden = kNormedCols,
                         .eps = 1e-5f,
                         .out_dtype = DType::kBF16,
                         .delta_scale = scale};
  if (fused) {
    all_reduce_norm(*queue, args);
  } else {
    const AllReduceNormOps ops = all_reduce_norm_ops(args);
    all_reduce(*queue, ops.sum);
    rms_norm(*queue, ops.norm);
  }
  EXPECT_TRUE(queue->drain().ok());
  const auto* out = static_cast<const uint16_t*>(args.out);
  return {{args.residual, args.residual + count}, {out, out + count}};
}

std::vector<Found> run_on_ranks(int size, bool fused, float scale) {
  const auto links = group::make_local_links(size);
  std::vector<Found> found(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = run_on(links[i], fused, scale); });
  }
  for (std::thread& thread : threads) thread.join();
  return found;
}

TEST(AllReduceNorm, HasTheBitsOfTheTwoOps) {
  for (const float scale : {1.0f, 0.22f}) {
    const std::vector<Found> fused = run_on_ranks(3, true, scale);
    EXPECT_EQ(fused, run_on_ranks(3, false, scale));
    EXPECT_EQ(fused[0], fused[2]);
  }
}

// Rows beyond the live ones stay, the others do not.
TEST(AllReduceNorm, TakesTheLiveRows) {
  const Found found = run_on_ranks(2, true, 1.0f)[1];
  const std::vector<float> before = floats(50, found.residual.size());
  const size_t live = size_t{kLiveNormed} * kNormedCols;
  EXPECT_TRUE(std::equal(before.begin() + kLiveNormed * kNormedCols, before.end(),
                         found.residual.begin() + kLiveNormed * kNormedCols));
  EXPECT_NE(before[live - 1], found.residual[live - 1]);
  EXPECT_NE(found.out[live - 1], 9);
  EXPECT_EQ(found.out[live], 9);
}

}  // namespace
}  // namespace foretoken
