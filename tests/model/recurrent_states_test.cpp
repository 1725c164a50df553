#include <gtest/gtest.h>

#include <algorithm>

#include "model/forward_harness.h"
#include "model/golden.h"

// What a slot has in recurrent layers, copied to another one behind a block's last position: the
// sequence goes on there as it does where it began, with the same bits.

namespace foretoken {
namespace {

constexpr int32_t kStateRows = 64;
constexpr int32_t kPrefix = 2 * test::ForwardHarness::kBlockSize;

class RecurrentStates : public testing::TestWithParam<test::GoldenCase> {
 protected:
  RecurrentStates()
      : model_(test::load_test_model(GetParam().folder, {"float32", GetParam().hf_overrides},
                                     kStateRows, GetParam().max_model_len)),
        harness_(test::model_device(), *model_, kStateRows, 8),
        pinned_(test::model_device(), MemoryKind::kPinned) {}

  void copy_slot(int32_t from, int32_t to) {
    for (const BlockPart& part : model_->state_parts()) {
      harness_.queue().copy(part.base + to * part.bytes, part.base + from * part.bytes,
                            static_cast<size_t>(part.bytes));
    }
    const BatchState& batch = harness_.batch();
    for (int32_t* tables : {batch.block_tables, batch.window_tables}) {
      std::copy_n(tables + from * batch.max_blocks, kPrefix / batch.block_size,
                  tables + to * batch.max_blocks);
    }
    batch.slots[to].computed = batch.slots[from].computed;
  }

  std::vector<std::byte> bytes_of(int32_t slot) {
    std::vector<std::byte> all;
    for (const BlockPart& part : model_->state_parts()) {
      auto* bytes =
          pinned_.take_array<std::byte>(static_cast<size_t>(part.bytes), "states").value();
      harness_.queue().copy(bytes, part.base + slot * part.bytes, static_cast<size_t>(part.bytes));
      EXPECT_TRUE(harness_.queue().drain().ok());
      all.insert(all.end(), bytes, bytes + part.bytes);
    }
    return all;
  }

  std::unique_ptr<Model> model_;
  test::ForwardHarness harness_;
  Arena pinned_;
};

TEST_P(RecurrentStates, GoOnInAnotherSlotWithTheSameBits) {
  auto ids = GetParam().prompts->at(0).at("greedy").get<std::vector<int32_t>>();
  ids.resize(kPrefix + 21);
  for (const int32_t slot : {0, 1, 2}) harness_.start(slot, ids);
  const auto step = [&](int32_t slot, int32_t rows) {
    const test::SpanWish wish{slot, rows};
    return harness_.step({&wish, 1});
  };
  const auto expected = step(2, kPrefix + 21);
  step(0, kPrefix);
  copy_slot(0, 1);
  // The original goes on, too, and is of no matter.
  step(0, 5);
  const auto rows = step(1, 21);
  ASSERT_EQ(rows.size(), 21u);
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), expected.begin() + kPrefix));
  const std::vector<std::byte> states = bytes_of(1);
  EXPECT_FALSE(states.empty());
  EXPECT_EQ(states, bytes_of(2));
  EXPECT_NE(states, bytes_of(0));
}

std::string states_case_name(const testing::TestParamInfo<test::GoldenCase>& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentStates, testing::ValuesIn(test::recurrent_cases()),
                         states_case_name);

}  // namespace
}  // namespace foretoken
