#include "model/stack/embedded_rows.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class EmbeddedRowsTest : public test::PartTest {
 protected:
  EmbeddedRows load() {
    return load_part<EmbeddedRows>([&](PartLoader& loader, EmbeddedRows* out) {
      return out->load(loader, *arena_, "model.", "model.embed_positions", true);
    });
  }
};

TEST_F(EmbeddedRowsTest, RowsAsWideAsTheLayersStayWhereTheyAre) {
  add("model.embed_tokens.weight", {2, 8});
  const EmbeddedRows rows = load();
  EXPECT_TRUE(rows.empty());
  float residual = 0;
  EXPECT_EQ(rows.table_rows(&residual), &residual);
  EXPECT_EQ(EmbeddedRows::num_weights(config_), 0);
}

TEST_F(EmbeddedRowsTest, NarrowRowsAreNormedAndMadeWide) {
  config_.embedding_size = 4;
  config_.learned_positions = 3;
  const auto& table = add("model.embed_positions.weight", {3, 4});
  const auto& matrix = add("model.embed_proj.weight", {8, 4});
  const auto& bias = add("model.embed_proj.bias", {8});
  EmbeddedRows rows = load();
  EXPECT_EQ(unused_, "");
  EXPECT_FALSE(rows.empty());
  EXPECT_EQ(EmbeddedRows::num_weights(config_), 12 + 32 + 8);
  ASSERT_TRUE(rows.take_scratch(scratch_source(1)).ok());
  // With what the position adds they are 3, -3, 3 and -3, and normed 1, -1, 1 and -1.
  std::vector<float> wanted(4);
  for (size_t i = 0; i < 4; ++i) {
    wanted[i] = (i % 2 == 0 ? 3.0f : -3.0f) - table.values[2 * 4 + i];
  }
  float* residual = to_device(std::vector<float>(8));
  float* narrow = rows.table_rows(residual);
  ASSERT_NE(narrow, residual);
  const LayerRows one = rows_of(1, {2});
  cast_rows(one, {to_device(wanted), DType::kF32, narrow, DType::kF32, 4});
  Norm norm;
  norm.weight = to_device(std::vector<float>(4, 1.0f));
  norm.bias = to_device(std::vector<float>(4, 0.5f));
  norm.kind = NormKind::kLayer;
  EXPECT_TRUE(rows.finish(one, norm, residual));
  std::vector<double> wide = matrix.times({1.5, -0.5, 1.5, -0.5});
  for (size_t i = 0; i < wide.size(); ++i) wide[i] += double(bias.values[i]);
  expect_near(residual, wide, 1e-4);
}

}  // namespace
}  // namespace foretoken
