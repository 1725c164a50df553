#include "device/memory_role_scope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "support/test_device.h"

// Devices that give their memory back while addresses stay.

namespace foretoken {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

class SleepingDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no such device";
    device_ = open_rank_device(0);
    ASSERT_TRUE(device_->allow_sleep().ok());
    queue_ = device_->make_queue().value();
    host_ = static_cast<unsigned char*>(device_->allocate(kBytes, MemoryKind::kPinned));
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    device_->deallocate(host_, MemoryKind::kPinned);
  }
  void* take(MemoryRole role, size_t bytes = kBytes) {
    const MemoryRoleScope scope(*device_, role);
    void* memory = device_->allocate(bytes, MemoryKind::kDevice);
    EXPECT_NE(memory, nullptr);
    return memory;
  }
  void fill(void* memory, int value, size_t bytes = kBytes) {
    queue_->fill(memory, value, bytes);
    EXPECT_TRUE(queue_->drain().ok());
  }
  // The value of all bytes; -1: they differ.
  int value_of(const void* memory, size_t bytes = kBytes) {
    queue_->copy(host_, memory, bytes);
    EXPECT_TRUE(queue_->drain().ok());
    const std::vector<unsigned char> all(host_, host_ + bytes);
    return all == std::vector<unsigned char>(bytes, host_[0]) ? host_[0] : -1;
  }
  void free(void* memory) { device_->deallocate(memory, MemoryKind::kDevice); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  unsigned char* host_ = nullptr;
};

TEST_F(SleepingDevice, ContentsComeBackByTheirRole) {
  void* const stays = take(MemoryRole::kStays);
  void* const kept = take(MemoryRole::kKept);
  void* const weights = take(MemoryRole::kWeights);
  void* const small = take(MemoryRole::kWeights, 100);
  void* const blocks = take(MemoryRole::kBlocks);
  fill(stays, 1);
  fill(kept, 2);
  fill(weights, 3);
  fill(small, 4, 100);
  fill(blocks, 5);
  for (const bool keeps : {true, true, false}) {
    const Result<int64_t> bytes = device_->give_back({.keeps_weights = keeps});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_GE(bytes.value(), static_cast<int64_t>(kBytes / 2));
    ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
    ASSERT_TRUE(device_->bring_back(MemoryRole::kBlocks).ok());
    EXPECT_EQ(value_of(stays), 1);
    EXPECT_EQ(value_of(kept), 2);
    EXPECT_EQ(value_of(weights), keeps ? 3 : 0);
    EXPECT_EQ(value_of(small, 100), keeps ? 4 : 0);
    EXPECT_EQ(value_of(blocks), 0);
    fill(blocks, 5);
  }
  for (void* memory : {stays, kept, weights, small, blocks}) free(memory);
}

// Pieces of what is kept travel by themselves; the last one is a part of one.
TEST_F(SleepingDevice, EachByteComesBackToItsPlace) {
  constexpr size_t kWords = (size_t{22} << 20) / sizeof(uint64_t) - 100;
  constexpr size_t kSize = kWords * sizeof(uint64_t);
  auto* const words = static_cast<uint64_t*>(device_->allocate(kSize, MemoryKind::kPinned));
  const std::array blocks = {take(MemoryRole::kWeights, kSize), take(MemoryRole::kKept, kSize)};
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::iota(words, words + kWords, i << 32);
    queue_->copy(blocks[i], words, kSize);
    ASSERT_TRUE(queue_->drain().ok());
  }
  ASSERT_TRUE(device_->give_back({}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
  for (size_t i = 0; i < blocks.size(); ++i) {
    queue_->copy(words, blocks[i], kSize);
    ASSERT_TRUE(queue_->drain().ok());
    std::vector<uint64_t> wanted(kWords);
    std::iota(wanted.begin(), wanted.end(), i << 32);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), words)) << i;
    free(blocks[i]);
  }
  device_->deallocate(words, MemoryKind::kPinned);
}

TEST_F(SleepingDevice, WeightsAreTakenAgainWhereTheyLay) {
  void* const staging = take(MemoryRole::kWeights, 5000);
  void* const weights = take(MemoryRole::kWeights);
  void* const small = take(MemoryRole::kWeights, 100);
  free(staging);
  fill(weights, 3);
  ASSERT_TRUE(device_->give_back({.keeps_weights = false}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
  device_->begin_again();
  void* const beside = take(MemoryRole::kWeights, 5000);
  EXPECT_EQ(take(MemoryRole::kWeights), weights);
  EXPECT_EQ(take(MemoryRole::kWeights, 100), small);
  EXPECT_TRUE(device_->end_again());
  fill(weights, 7);
  free(beside);
  free(weights);
  free(small);
  EXPECT_EQ(value_of(weights), 7);
  free(weights);
  free(small);
}

// A recorded step names the addresses.
TEST_F(SleepingDevice, AGraphOutlivesItsMemory) {
  void* const from = take(MemoryRole::kWeights);
  void* const to = take(MemoryRole::kBlocks);
  fill(from, 9);
  queue_->begin_capture();
  queue_->copy(to, from, kBytes);
  const std::unique_ptr<Graph> graph = queue_->end_capture();
  ASSERT_NE(graph, nullptr);
  ASSERT_TRUE(device_->give_back({}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kBlocks).ok());
  EXPECT_EQ(value_of(to), 0);
  queue_->replay(*graph);
  EXPECT_EQ(value_of(to), 9);
  free(from);
  free(to);
}

// It is of use within a step alone, and taken again with the weights.
TEST_F(SleepingDevice, ScratchDoesNotTravel) {
  void* const weights = take(MemoryRole::kWeights);
  void* const scratch = take(MemoryRole::kScratch);
  fill(weights, 3);
  fill(scratch, 4);
  ASSERT_TRUE(device_->give_back({}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
  EXPECT_EQ(value_of(weights), 3);
  EXPECT_EQ(value_of(scratch), 0);
  device_->begin_again();
  EXPECT_EQ(take(MemoryRole::kWeights), weights);
  EXPECT_EQ(take(MemoryRole::kScratch), scratch);
  EXPECT_TRUE(device_->end_again());
  for (void* memory : {weights, weights, scratch, scratch}) free(memory);
}

TEST_F(SleepingDevice, GivesBackOnePart) {
  void* const weights = take(MemoryRole::kWeights);
  void* const blocks = take(MemoryRole::kBlocks);
  fill(weights, 3);
  fill(blocks, 5);
  ASSERT_TRUE(device_->give_back({.blocks = false, .keeps_weights = false}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kWeights).ok());
  EXPECT_EQ(value_of(weights), 0);
  EXPECT_EQ(value_of(blocks), 5);
  fill(weights, 3);
  ASSERT_TRUE(device_->give_back({.weights = false}).ok());
  ASSERT_TRUE(device_->bring_back(MemoryRole::kBlocks).ok());
  EXPECT_EQ(value_of(weights), 3);
  EXPECT_EQ(value_of(blocks), 0);
  for (void* memory : {weights, blocks}) free(memory);
}

TEST_F(SleepingDevice, EndsWhileMemoryIsAway) {
  void* const weights = take(MemoryRole::kWeights);
  ASSERT_TRUE(device_->give_back({}).ok());
  free(weights);
}

}  // namespace
}  // namespace foretoken
