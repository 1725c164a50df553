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

  Result<std::unique_ptr<KvOffload>> make(int64_t bytes) {
    KvOffloadParts parts{.num_blocks = kBlocks,
                         .headers = headers_,
                         .parts = {{reinterpret_cast<std::byte*>(bytes_), kBytes}}};
    auto offload = KvOffload::make(device(), queue(), parts, bytes, 3);
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
  auto offload = make(1 << 16);
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
  const auto offload = make(1000);
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  const int images = offload.value()->num_images();
  using Moves = std::vector<BlockMove>;
  EXPECT_TRUE(offload.value()->can_move(Moves{{.block = 3, .image = images - 1}}));
  EXPECT_FALSE(offload.value()->can_move(Moves{{.block = kBlocks, .image = 0}}));
  EXPECT_FALSE(offload.value()->can_move(Moves{{.block = 0, .image = 0}}));
  EXPECT_FALSE(offload.value()->can_move(Moves{{.block = 1, .image = images}}));
  EXPECT_FALSE(offload.value()->can_move(Moves(4, {.block = 1, .image = 0})));
}

TEST_F(KvOffloadTest, TakesAsManyImagesAsFit) {
  const auto offload = make(1000);
  ASSERT_TRUE(offload.ok()) << offload.status().message();
  EXPECT_EQ(offload.value()->num_images(), 1000 / offload.value()->image_bytes());
  EXPECT_EQ(offload.value()->image_bytes() % 16, 0);
  const auto too_much = make(int64_t{1} << 60);
  ASSERT_FALSE(too_much.ok());
  EXPECT_NE(too_much.status().message().find("lower it"), std::string::npos);
  const auto none = make(40);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("--kv-offloading-size"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
