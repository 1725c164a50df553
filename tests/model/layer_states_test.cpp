#include "model/layer_states.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace foretoken {
namespace {

const StateSpec kLinear{.conv_channels = 20,
                        .conv_width = 4,
                        .linear = {.key_heads = 1,
                                   .value_heads = 2,
                                   .key_dim = 4,
                                   .value_dim = 6,
                                   .scaled = true,
                                   .delta = true}};

// A linear attention, attention, and a convolution alone.
std::vector<LayerPlan> plan_of_three() {
  std::vector<LayerPlan> layers(3);
  layers[0].state = kLinear;
  layers[1].num_heads = 2;
  layers[2].state = {.conv_channels = 8, .conv_width = 3};
  return layers;
}

TEST(LayerStates, BytesAreThoseOfEachSlotAndOfTheNullSlot) {
  const std::vector<LayerPlan> layers = plan_of_three();
  // Of a position: keys, values, decays and scales.
  const int update = 4 + 12 + 2 + 2;
  const auto expected = [&](int slots, int drafts) {
    const int back = drafts + 1;
    const int linear = 20 * (3 + back) + 2 * 4 * 6 + 1 + back * update;
    const int conv = 8 * (2 + back);
    return 4 * (slots + 1) * (linear + conv);
  };
  EXPECT_EQ(LayerStates::bytes(layers, {.num_slots = 5, .max_draft_tokens = 3}), expected(5, 3));
  EXPECT_EQ(LayerStates::bytes(layers, {.num_slots = 1, .max_draft_tokens = 0}), expected(1, 0));
  EXPECT_EQ(LayerStates::bytes(std::vector<LayerPlan>(2), {.num_slots = 5}), 0);
}

TEST(LayerStates, EachLayerFindsItsOwn) {
  if (test_device() == nullptr) GTEST_SKIP();
  LayerStates states(*test_device());
  EXPECT_EQ(states.of(0, nullptr).states, nullptr) << "before they are taken";
  ASSERT_TRUE(states.take(plan_of_three(), {.num_slots = 5, .max_draft_tokens = 3}).ok());
  const SlotState slots[1] = {};
  const LayerState linear = states.of(0, slots);
  EXPECT_NE(linear.history, nullptr);
  EXPECT_NE(linear.states, nullptr);
  EXPECT_NE(linear.committed, nullptr);
  EXPECT_NE(linear.pending, nullptr);
  EXPECT_EQ(linear.history_rows, 7) << "three before, the last known token and three drafts";
  EXPECT_EQ(linear.pending_rows, 4);
  EXPECT_EQ(linear.slots, slots);
  const LayerState attention = states.of(1, slots);
  EXPECT_EQ(attention.history, nullptr);
  EXPECT_EQ(attention.states, nullptr);
  const LayerState conv = states.of(2, nullptr);
  EXPECT_NE(conv.history, nullptr);
  EXPECT_EQ(conv.history_rows, 6);
  EXPECT_EQ(conv.states, nullptr);
  EXPECT_EQ(conv.slots, nullptr);
  int64_t bytes = 0;
  for (const BlockPart& part : states.parts()) bytes += 6 * part.bytes;
  EXPECT_EQ(states.parts().size(), 5u);
  EXPECT_EQ(bytes, LayerStates::bytes(plan_of_three(), {.num_slots = 5, .max_draft_tokens = 3}));
}

TEST(LayerStates, TooManySequencesAreToldHowManyBytesTheyNeed) {
  if (test_device() == nullptr) GTEST_SKIP();
  LayerStates states(*test_device());
  const Status status = states.take(plan_of_three(), {.num_slots = 2'000'000'000});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2000000000 sequences"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("lower --max-num-seqs"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
