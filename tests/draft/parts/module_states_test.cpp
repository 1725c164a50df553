#include "draft/parts/module_states.h"

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class ModuleStatesTest : public DeviceTest {
 protected:
  static constexpr int kHidden = 4;

  // Two live rows of three, at KV slots 5 and 2.
  StepTensors tensors() {
    StepTensors made{};
    made.counts = to_device(std::vector<StepCounts>{{2, 0, 0, 0}});
    made.kv_slot = to_device(std::vector<int32_t>{5, 2, 0});
    return made;
  }
  const float* states(float from) {
    std::vector<float> values;
    for (int i = 0; i < 3 * kHidden; ++i) values.push_back(from + static_cast<float>(i));
    return to_device(values);
  }
};

TEST_F(ModuleStatesTest, PagesLieAtTheKvSlot) {
  ModuleStates modules(device(), 3, kHidden, DType::kBF16);
  EXPECT_EQ(modules.bytes_per_block(8), 2 * 8 * kHidden * 2);
  ASSERT_TRUE(modules.take_pages(4, 2).ok());
  modules.keep_page(queue(), 0, states(1), tensors(), 3);
  modules.keep_page(queue(), 1, states(21), tensors(), 3);
  for (int module = 0; module < 2; ++module) {
    const auto pages = read(static_cast<const uint16_t*>(modules.pages(module)), 8 * kHidden);
    const float first = module == 0 ? 1 : 21;
    for (int slot = 0; slot < 8; ++slot) {
      for (int c = 0; c < kHidden; ++c) {
        const float expected = slot == 5   ? first + static_cast<float>(c)
                               : slot == 2 ? first + static_cast<float>(kHidden + c)
                                           : 0;
        EXPECT_EQ(bf16_to_float(pages[static_cast<size_t>(slot * kHidden + c)]), expected);
      }
    }
  }
}

// Of each state a rank keeps its columns; the rows of a pass are whole.
TEST_F(ModuleStatesTest, PagesHoldARanksColumns) {
  ModuleStates modules(device(), 2, kHidden, DType::kF32, {.rank = 1, .size = 2});
  EXPECT_EQ(modules.bytes_per_block(8), 8 * kHidden / 2 * 4);
  ASSERT_TRUE(modules.take_pages(4, 2).ok());
  modules.keep_page(queue(), 0, states(1), tensors(), 3);
  const auto pages = read(static_cast<const float*>(modules.pages(0)), 8 * kHidden / 2);
  for (size_t slot = 0; slot < 8; ++slot) {
    for (size_t c = 0; c < kHidden / 2; ++c) {
      const auto column = static_cast<float>(kHidden / 2 + c);
      const float expected = slot == 5 ? 1 + column : slot == 2 ? 1 + kHidden + column : 0;
      EXPECT_EQ(pages[slot * (kHidden / 2) + c], expected);
    }
  }
}

TEST_F(ModuleStatesTest, RowsKeepTheirOrder) {
  ModuleStates modules(device(), 2, kHidden, DType::kF32);
  ASSERT_TRUE(modules.take_rows(3).ok());
  EXPECT_EQ(modules.row_bytes(), 3 * kHidden * 4);
  modules.keep_rows(queue(), 0, states(7), tensors(), 3);
  const auto rows = read(modules.rows(0), 2 * kHidden);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], 7 + static_cast<float>(i));
}

TEST_F(ModuleStatesTest, OneModuleKeepsNothing) {
  ModuleStates modules(device(), 1, kHidden, DType::kF32);
  ASSERT_TRUE(modules.take_pages(4, 2).ok());
  ASSERT_TRUE(modules.take_rows(3).ok());
  EXPECT_EQ(modules.bytes_per_block(8), 0);
  EXPECT_EQ(modules.row_bytes(), 0);
}

}  // namespace
}  // namespace foretoken
