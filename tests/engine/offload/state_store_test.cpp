#include "engine/offload/state_store.h"

#include "support/test_device.h"

namespace foretoken {
namespace {

// Four slots of two arrays, of 40 and 4 bytes, all of them the slot's number.
class StateStoreTest : public DeviceTest {
 protected:
  static constexpr int kSlots = 4;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    for (const int64_t bytes : {40, 4}) {
      std::vector<uint8_t> values(static_cast<size_t>(kSlots * bytes));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<uint8_t>(static_cast<int64_t>(i) / bytes);
      }
      parts_.push_back({reinterpret_cast<std::byte*>(to_device(values)), bytes});
    }
  }

  int value_of(int slot) {
    int value = -1;
    for (const BlockPart& part : parts_) {
      const auto all =
          read(reinterpret_cast<uint8_t*>(part.base), static_cast<size_t>(kSlots * part.bytes));
      const int last = all[static_cast<size_t>((slot + 1) * part.bytes - 1)];
      EXPECT_TRUE(value < 0 || value == last);
      value = last;
    }
    return value;
  }

  std::vector<BlockPart> parts_;
};

// A slot gets another one's states in the plan that keeps its own.
TEST_F(StateStoreTest, WhatIsKeptIsKeptBeforeWhatIsBrought) {
  auto store = StateStore::make(device(), queue(), parts_, kSlots, 2);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(StateStore::snapshot_bytes(parts_), 64);
  ASSERT_EQ(store.value()->parts().size(), 1u);
  EXPECT_EQ(store.value()->parts()[0].bytes, 64);
  using Moves = std::vector<StateMove>;
  store.value()->enqueue(queue(), 0, Moves{{.slot = 1, .snapshot = 0}}, {});
  store.value()->enqueue(queue(), 1, Moves{{.slot = 2, .snapshot = 1}},
                         Moves{{.slot = 2, .snapshot = 0}, {.slot = 3, .snapshot = 0}});
  EXPECT_EQ(value_of(2), 1);
  EXPECT_EQ(value_of(3), 1);
  store.value()->enqueue(queue(), 2, {}, Moves{{.slot = 0, .snapshot = 1}});
  EXPECT_EQ(value_of(0), 2);
  EXPECT_EQ(value_of(1), 1);
}

TEST_F(StateStoreTest, KnowsWhatItCanMove) {
  const auto store = StateStore::make(device(), queue(), parts_, kSlots, 2);
  ASSERT_TRUE(store.ok());
  drain();
  using Moves = std::vector<StateMove>;
  EXPECT_TRUE(store.value()->can_move(Moves{{.slot = 3, .snapshot = 1}}));
  EXPECT_FALSE(store.value()->can_move(Moves{{.slot = 4, .snapshot = 1}}));
  EXPECT_FALSE(store.value()->can_move(Moves{{.slot = 0, .snapshot = 2}}));
  EXPECT_FALSE(store.value()->can_move(Moves(9, {.slot = 1, .snapshot = 0})));
}

TEST_F(StateStoreTest, ARankWithoutRecurrentLayersCopiesNothing) {
  const auto store = StateStore::make(device(), queue(), {}, kSlots, 2);
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE(store.value()->parts().empty());
  store.value()->enqueue(queue(), 0, std::vector<StateMove>{{.slot = 1, .snapshot = 0}}, {});
  drain();
}

}  // namespace
}  // namespace foretoken
