#include "model/taps.h"

#include <gtest/gtest.h>

#include "kernels/rows/move_rows.h"
#include "support/op_queue.h"

namespace foretoken {
namespace {

ModelConfig tapped_config(DType dtype, int streams = 1) {
  ModelConfig config;
  config.hidden_size = 8;
  config.num_layers = 4;
  config.dtype = dtype;
  config.hyper.count = streams;
  return config;
}

TEST(Taps, ListEachLayerOnce) {
  const ModelConfig config = tapped_config(DType::kF32);
  Taps taps(config);
  float pages[1];
  EXPECT_TRUE(taps.layers().empty());
  taps.add({{3, 1}, pages});
  taps.add({{1, 2, TapSink::kFinalNorm}, pages});
  EXPECT_EQ(taps.layers(), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_TRUE(taps.has(2));
  EXPECT_FALSE(taps.has(0));
  EXPECT_TRUE(taps.wants(TapSink::kFinalNorm));
  EXPECT_FALSE(taps.wants(TapSink::kLastLayer));
  taps.add({{0, TapSink::kLastLayer}, pages});
  EXPECT_TRUE(taps.wants(TapSink::kLastLayer));
  EXPECT_EQ(taps.layers(), (std::vector<int32_t>{0, 1, 2, 3}));
  taps.pass_on({0});
  EXPECT_TRUE(taps.has(0));
}

TEST(Taps, KeepTheStatesOfALayerAtTheRowsPlaces) {
  const ModelConfig config = tapped_config(DType::kBF16);
  Taps taps(config);
  float states[8], pages[24];
  int32_t kv_slot[1];
  StepCounts counts{};
  StepTensors tensors{};
  tensors.counts = &counts;
  tensors.kv_slot = kv_slot;
  taps.add({{0, 2, 3}, pages});
  test::ArgsQueue<MoveRowsArgs> queue;
  taps.keep(queue, tensors, 5, 1, states);
  EXPECT_EQ(queue.num_ops, 0) << "nobody wants them";
  taps.keep(queue, tensors, 5, 2, states);
  ASSERT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.in, states);
  EXPECT_EQ(queue.last.out, pages);
  EXPECT_EQ(queue.last.to, kv_slot);
  EXPECT_EQ(queue.last.max_rows, 5);
  EXPECT_EQ(queue.last.width, 8);
  EXPECT_EQ(queue.last.out_stride, 24);
  EXPECT_EQ(queue.last.out_offset, 8);
  EXPECT_EQ(queue.last.in_dtype, DType::kF32);
  EXPECT_EQ(queue.last.out_dtype, DType::kBF16);
}

TEST(Taps, AllStreamsOfARowLieSideBySide) {
  const ModelConfig config = tapped_config(DType::kBF16, 3);
  Taps taps(config);
  float states[24], pages[24];
  StepCounts counts{};
  StepTensors tensors{};
  tensors.counts = &counts;
  taps.add({{TapSink::kStreams}, pages});
  EXPECT_TRUE(taps.layers().empty());
  EXPECT_FALSE(taps.wants(TapSink::kFinalNorm));
  test::ArgsQueue<MoveRowsArgs> queue;
  taps.keep(queue, tensors, 5, 0, states);
  EXPECT_EQ(queue.num_ops, 0);
  taps.keep(queue, tensors, 5, TapSink::kStreams, states);
  ASSERT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.width, 24);
  EXPECT_EQ(queue.last.out_stride, 24);
  EXPECT_EQ(queue.last.in_dtype, DType::kF32);
}

}  // namespace
}  // namespace foretoken
