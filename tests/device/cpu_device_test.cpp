#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace foretoken::cpu {
namespace {

int packed = 0;

void* pack(std::span<const WeightPart> parts, int64_t k, DType, WeightOrder, int64_t) {
  packed += static_cast<int>(parts.size() * static_cast<size_t>(k));
  return &packed;
}
void unpack(void* weight) { *static_cast<int*>(weight) = 0; }

TEST(CpuDevice, HandsWeightsToTheKernels) {
  CpuKernels kernels;
  kernels.pack_weight = pack;
  kernels.free_weight = unpack;
  const auto device = open_cpu_device(kernels, 2).value();
  const WeightPart parts[2] = {{nullptr, 1}, {nullptr, 1}};
  void* weight = device->pack_weight(parts, 5, DType::kF32);
  EXPECT_EQ(packed, 10);
  device->free_weight(weight);
  EXPECT_EQ(packed, 0);
}

TEST(CpuDevice, NamesThreadsAndInstructions) {
  const auto device = open_cpu_device({}, 2).value();
  EXPECT_EQ(device->name().rfind("cpu (2 threads, ", 0), 0u) << device->name();
}

// Bytes of [begin, begin + bytes) that are in memory.
size_t resident_bytes(void* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  EXPECT_EQ(mincore(begin, bytes, pages.data()), 0);
  const auto in_memory = [](unsigned char flags) { return (flags & 1) != 0; };
  return page * static_cast<size_t>(std::count_if(pages.begin(), pages.end(), in_memory));
}

TEST(CpuDevice, GivesBackWhatWasTriedOutAndKeepsCounters) {
  auto device = open_cpu_device({}, 1).value();
  constexpr size_t kScratch = 256 << 10;
  constexpr size_t kCounters = 4096;
  auto* scratch = static_cast<char*>(device->allocate(kScratch, MemoryKind::kDevice));
  auto* counters = static_cast<char*>(device->allocate(kCounters, MemoryKind::kDevice));
  std::memset(scratch, 1, kScratch / 2);
  device->mark_touched();
  std::memset(scratch, 2, kScratch);
  std::memset(counters, 3, kCounters);
  device->give_back_touched();
  EXPECT_EQ(resident_bytes(scratch, kScratch), kScratch / 2);
  EXPECT_EQ(scratch[0], 2);
  EXPECT_EQ(scratch[kScratch - 1], 0);
  EXPECT_EQ(counters[0], 3);
  device->deallocate(scratch, MemoryKind::kDevice);
  device->deallocate(counters, MemoryKind::kDevice);
}

// A huge page of it would be four fifths of it.
TEST(CpuDevice, ATouchOfASmallBufferIsOnePage) {
  auto device = open_cpu_device({}, 1).value();
  constexpr size_t kBytes = 2560 << 10;
  auto* buffer = static_cast<char*>(device->allocate(kBytes, MemoryKind::kDevice));
  buffer[0] = 1;
  EXPECT_LE(resident_bytes(buffer, kBytes), size_t{64} << 10);
  device->deallocate(buffer, MemoryKind::kDevice);
}

TEST(CpuDevice, GivesNoMemoryBeyondTheAddressSpace) {
  const auto device = open_cpu_device({}, 1).value();
  EXPECT_EQ(device->allocate(size_t{1} << 52, MemoryKind::kDevice), nullptr);
  device->deallocate(nullptr, MemoryKind::kDevice);
}

}  // namespace
}  // namespace foretoken::cpu
