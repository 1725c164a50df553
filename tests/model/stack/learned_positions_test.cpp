#include "model/stack/learned_positions.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class LearnedPositionsTest : public test::PartTest {
 protected:
  LearnedPositions load(int32_t first_row) {
    config_.learned_positions = 6;
    config_.first_position_row = first_row;
    return load_part<LearnedPositions>([&](PartLoader& loader, LearnedPositions* out) {
      return out->load(loader, *arena_, "model.embed_positions");
    });
  }
};

TEST_F(LearnedPositionsTest, TheRowOfThePositionIsAdded) {
  const auto& table = add("model.embed_positions.weight", {6, 8});
  for (const int32_t first_row : {0, 2}) {
    LearnedPositions positions = load(first_row);
    EXPECT_EQ(unused_, "");
    ASSERT_FALSE(positions.empty());
    EXPECT_EQ(LearnedPositions::num_weights(config_), 48);
    ASSERT_TRUE(positions.take_scratch(scratch_source(3)).ok());
    std::vector<float> values(24);
    foretoken::fill_random("x", 24, 0.8f, DType::kF32, values.data());
    float* residual = to_device(values);
    const std::vector<int32_t> at = {3, 0, 1};
    positions.add(rows_of(3, at), residual);
    const std::vector<float> got = read(residual, 24);
    for (size_t i = 0; i < 24; ++i) {
      const size_t row = static_cast<size_t>(at[i / 8] + first_row);
      EXPECT_EQ(got[i], values[i] + table.values[row * 8 + i % 8]) << i;
    }
  }
}

}  // namespace
}  // namespace foretoken
