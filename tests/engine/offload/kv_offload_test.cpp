#include "engine/offload/kv_offload.h"

#include "support/test_device.h"

namespace foretoken {
namespace {

// Four blocks of one part of 40 bytes, all of them the block's number.
class KvOffloadTest : public DeviceTest {
 protected:
  static constexpr int kBlocks = 4;
  static constexpr int64_t kBytes = 40;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    std::vector<uint8_t> values(kBlocks * kBytes);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i / kBytes);
    bytes_ = to_device(values);
    headers_ = to_device(std::vector<PageHeader>(kBlocks));
  }

  // With snapshots of states the same array is theirs, too.
  KvOffloadParts parts(bool windowed = false, bool states = false) const {
    const std::vector<BlockPart> array = {{reinterpret_cast<std::byte*>(bytes_), kBytes}};
    KvOffloadParts all;
    all[0] = {.num_places = kBlocks, .headers = headers_, .arrays = array};
    if (windowed) all[1] = {.num_places = kBlocks, .arrays = array};
    if (states) all[2] = {.first_place = 0, .num_places = kBlocks, .arrays = array};
    return all;
  }
  Result<std::unique_ptr<KvOffload>> make(const ImageCounts& images) {
    auto offload = KvOffload::make(device(), queue(), parts(true, true), images, 3);
    drain();
    return offload;
  }

  int value_of(int block) {
    return read(bytes_, kBlocks * kBytes)[static_cast<size_t>(block * kBytes + kBytes - 1)];
  }

  uint8_t* bytes_ = nullptr;
  PageHeader* headers_ = nullptr;
};

// A block that comes in lies where another one went out from in the same plan.
TEST_F(KvOffloadTest, WhatGoesOutGoesBeforeWhatComesIn) {
  auto offload = make({3, 0, 0});
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  StepPlan plan;
  plan.moves_out = {{.block = 1, .image = 0}};
  offload.value()->enqueue(queue(), plan.step, plan.moves_out, plan.moves_in);
  plan.step = 1;
  plan.moves_out = {{.block = 2, .image = 1}, {.block = 3, .image = 2}};
  plan.moves_in = {{.block = 2, .image = 0, .parent = 3, .parent_epoch = 5, .epoch = 7}};
  offload.value()->enqueue(queue(), plan.step, plan.moves_out, plan.moves_in);
  EXPECT_EQ(value_of(2), 1);
  EXPECT_EQ(value_of(1), 1);
  EXPECT_EQ(value_of(3), 3);
  plan.step = 2;
  plan.moves_out.clear();
  plan.moves_in = {{.block = 1, .image = 1}};
  offload.value()->enqueue(queue(), plan.step, plan.moves_out, plan.moves_in);
  EXPECT_EQ(value_of(1), 2);
  const PageHeader header = read(headers_, kBlocks)[2];
  EXPECT_EQ(header.parent, 3);
  EXPECT_EQ(header.parent_epoch, 5u);
  EXPECT_EQ(header.epoch, 7u);
}

TEST_F(KvOffloadTest, KnowsWhatItCanMove) {
  const auto offload = make({5, 4, 2});
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  using Moves = std::vector<BlockMove>;
  const auto can_move = [&](const BlockMove& move) {
    return offload.value()->can_move(Moves{move});
  };
  EXPECT_TRUE(can_move({.block = 3, .image = 4}));
  EXPECT_FALSE(can_move({.block = kBlocks, .image = 0}));
  EXPECT_FALSE(can_move({.block = 0, .image = 0}));
  EXPECT_FALSE(can_move({.block = 1, .image = 5}));
  EXPECT_TRUE(can_move({.block = 1, .image = 3, .part = HostPart::kWindowed}));
  EXPECT_FALSE(can_move({.block = 1, .image = 4, .part = HostPart::kWindowed}));
  EXPECT_TRUE(can_move({.block = 0, .image = 1, .part = HostPart::kStates}));
  EXPECT_FALSE(can_move({.block = 0, .image = 2, .part = HostPart::kStates}));
  EXPECT_FALSE(can_move({.block = 1, .image = 0, .part = static_cast<HostPart>(3)}));
  EXPECT_FALSE(offload.value()->can_move(Moves(4, {.block = 1, .image = 0})));
}

// Images of one number and of several parts are several; each part has one call.
TEST_F(KvOffloadTest, PartsHaveImagesOfTheirOwn) {
  auto offload = make({2, 2, 2});
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  const std::vector<BlockMove> out = {{.block = 3, .image = 1, .part = HostPart::kStates},
                                      {.block = 1, .image = 1},
                                      {.block = 2, .image = 1, .part = HostPart::kWindowed}};
  offload.value()->enqueue(queue(), 0, out, {});
  offload.value()->enqueue(
      queue(), 1, {},
      std::vector<BlockMove>{{.block = 0, .image = 1, .part = HostPart::kStates},
                             {.block = 3, .image = 1, .part = HostPart::kWindowed},
                             {.block = 2, .image = 1}});
  EXPECT_EQ(value_of(0), 3);
  EXPECT_EQ(value_of(2), 1);
  EXPECT_EQ(value_of(3), 2);
  KvOffload::Counts counts;
  counts.store({.num_queried_tokens = 9,
                .num_hit_tokens = 8,
                .num_moved_out = {1, 2, 3},
                .num_moved_in = {}});
  const int64_t plain = offload.value()->image_bytes(HostPart::kStates);
  EXPECT_EQ(offload.value()->bytes_of(counts.moved_out),
            offload.value()->image_bytes(HostPart::kFull) + 5 * plain);
  EXPECT_EQ(offload.value()->bytes_of(counts.moved_in), 0);
  EXPECT_EQ(counts.hit_tokens.load(), 8);
}

TEST_F(KvOffloadTest, ARankWithoutSuchLayersMovesNothing) {
  KvOffloadParts none = parts(true, true);
  none[2].arrays.clear();
  auto offload = KvOffload::make(device(), queue(), none, {1, 1, 1}, 3);
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  const std::vector<BlockMove> move = {{.block = 1, .image = 0, .part = HostPart::kStates}};
  EXPECT_TRUE(offload.value()->can_move(move));
  offload.value()->enqueue(queue(), 0, move, {});
  drain();
  EXPECT_EQ(offload.value()->image_bytes(HostPart::kStates), 0);
}

TEST_F(KvOffloadTest, CountsTheImagesThatFit) {
  const int64_t full = parts()[0].image_bytes(), other = parts(true)[1].image_bytes();
  EXPECT_EQ(other, 48);
  EXPECT_GT(full, other);
  EXPECT_EQ(count_images(parts(), 10 * full + 7).value(), (ImageCounts{10, 0, 0}));
  EXPECT_EQ(count_images(parts(true), 10 * (full + other) + 7).value(), (ImageCounts{10, 10, 0}));
  // Half for states, but no more of them than of blocks.
  KvOffloadParts large = parts(false, true);
  large[2].arrays.assign(20, large[2].arrays.front());
  EXPECT_EQ(count_images(large, 100 * 20 * other).value(),
            (ImageCounts{static_cast<int>(50 * 20 * other / full), 0, 50}));
  EXPECT_EQ(count_images(parts(false, true), 10 * (full + other)).value(),
            (ImageCounts{10, 0, 10}));
  EXPECT_EQ(count_images(large, 20 * other + full).value(), (ImageCounts{1, 0, 1}));
  EXPECT_NE(count_images(large, 20 * other).status().message().find("one snapshot"),
            std::string::npos);
  // As many as are counted out.
  EXPECT_EQ(count_images(parts(true), bytes_of_blocks(parts(true), 7)).value(),
            (ImageCounts{7, 7, 0}));
  EXPECT_GE(count_images(large, bytes_of_blocks(large, 70)).value()[0], 70);
  EXPECT_NE(count_images(parts(), 40).status().message().find("--kv-offloading-size has no room"),
            std::string::npos);
  EXPECT_NE(count_images(parts(), int64_t{1} << 60).status().message().find("lower it"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
