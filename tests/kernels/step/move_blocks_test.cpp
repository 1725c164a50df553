#include "kernels/step/move_blocks.h"

#include <numeric>

#include "support/test_device.h"

namespace foretoken {
namespace {

class MoveBlocksTest : public DeviceTest {
 protected:
  static constexpr int kBlocks = 6;
  static constexpr int kImages = 3;

  // Byte b of block n is n * step + b, cut to a byte.
  BlockPart part_of(int64_t bytes, int step) {
    std::vector<uint8_t> values(static_cast<size_t>(kBlocks * bytes));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto block = static_cast<int64_t>(i) / bytes;
      values[i] = static_cast<uint8_t>(block * step + static_cast<int64_t>(i) % bytes);
    }
    return {reinterpret_cast<std::byte*>(to_device(values)), bytes};
  }

  std::vector<uint8_t> block_of(const BlockPart& part, int block) {
    const std::vector<uint8_t> all =
        read(reinterpret_cast<uint8_t*>(part.base), static_cast<size_t>(part.bytes * kBlocks));
    const auto begin = all.begin() + block * part.bytes;
    return {begin, begin + part.bytes};
  }
};

// Sizes that divide by 16, by 4 and by nothing.
TEST_F(MoveBlocksTest, BringsBackWhatItTookOut) {
  const std::vector<BlockPart> parts = {part_of(8192, 3), part_of(68, 5), part_of(33, 7)};
  std::vector<ImagePart> placed;
  int64_t at = 0;
  for (const BlockPart& part : parts) {
    placed.push_back({part, at});
    at += (part.bytes + 15) / 16 * 16;
  }
  std::vector<PageHeader> headers(kBlocks);
  headers[4] = {.parent = 2, .parent_epoch = 9, .epoch = 3, .count = 16, .draft_counts = {5, 16}};
  const int64_t image_bytes = at + 64;
  MoveBlocksArgs args{.moves = nullptr,
                      .parts = to_device(placed),
                      .headers = to_device(headers),
                      .images = allocate<std::byte>(static_cast<size_t>(kImages * image_bytes),
                                                    MemoryKind::kPinned),
                      .image_bytes = image_bytes,
                      .header_at = at,
                      .num_moves = 2,
                      .num_parts = static_cast<int32_t>(parts.size()),
                      .inwards = 0};
  auto* moves = allocate<DeviceBlockMove>(4, MemoryKind::kPinned);
  moves[0] = {4, 2, 0, 0, 0};
  moves[1] = {1, 0, 0, 0, 0};
  moves[2] = {5, 2, 3, 77, 8};
  moves[3] = {2, 0, -1, 0, 6};
  args.moves = moves;
  move_blocks(queue(), args);
  args.moves = moves + 2;
  args.inwards = 1;
  move_blocks(queue(), args);
  for (const BlockPart& part : parts) {
    EXPECT_EQ(block_of(part, 5), block_of(part, 4));
    EXPECT_EQ(block_of(part, 2), block_of(part, 1));
    EXPECT_NE(block_of(part, 3), block_of(part, 4));
  }
  const std::vector<PageHeader> after = read(args.headers, kBlocks);
  EXPECT_EQ(after[5].parent, 3);
  EXPECT_EQ(after[5].parent_epoch, 77u);
  EXPECT_EQ(after[5].epoch, 8u);
  EXPECT_EQ(after[5].count, 16);
  EXPECT_EQ(after[5].draft_counts[0], 5);
  EXPECT_EQ(after[5].draft_counts[1], 16);
  EXPECT_EQ(after[2].parent, -1);
  EXPECT_EQ(after[2].epoch, 6u);
}

// States of slots have none, and images that lie on the device.
TEST_F(MoveBlocksTest, LargePartsWithoutHeaders) {
  const BlockPart part = part_of(1 << 20, 5);
  const std::vector<ImagePart> placed = {{part, 0}, {part_of(4, 9), 1 << 20}};
  const int64_t image_bytes = (1 << 20) + 16;
  auto* moves = allocate<DeviceBlockMove>(2, MemoryKind::kPinned);
  moves[0] = {4, 1, 0, 0, 0};
  moves[1] = {5, 1, 0, 0, 0};
  MoveBlocksArgs args{.moves = moves,
                      .parts = to_device(placed),
                      .headers = nullptr,
                      .images = allocate<std::byte>(static_cast<size_t>(kImages * image_bytes)),
                      .image_bytes = image_bytes,
                      .header_at = 0,
                      .num_moves = 1,
                      .num_parts = 2,
                      .inwards = 0};
  move_blocks(queue(), args);
  args.moves = moves + 1;
  args.inwards = 1;
  move_blocks(queue(), args);
  for (const ImagePart& each : placed) {
    EXPECT_EQ(block_of(each.part, 5), block_of(each.part, 4));
    EXPECT_NE(block_of(each.part, 3), block_of(each.part, 4));
  }
}

}  // namespace
}  // namespace foretoken
