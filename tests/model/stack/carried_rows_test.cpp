#include "model/stack/carried_rows.h"

#include "model/layer/part_rig.h"

// tests/conformance/ranks/carried_rows_test.cpp holds what crosses between stages against models.

namespace foretoken {
namespace {

constexpr int32_t kCarried = 2;

class CarriedRowsTest : public test::PartTest {
 protected:
  CarriedRows load() {
    auto carried = load_part<CarriedRows>([&](PartLoader& loader, CarriedRows* out) {
      return out->load(loader, *arena_, "model.", kCarried, {});
    });
    EXPECT_EQ(unused_, "");
    EXPECT_TRUE(carried.take_scratch(scratch_source(kCarried)).ok());
    return carried;
  }
};

TEST_F(CarriedRowsTest, AreNothingWhereTheModelHasAResidualAlone) {
  add("model.norm.weight", {8});
  config_.num_layers = 2;
  CarriedRows carried = load_part<CarriedRows>([&](PartLoader& loader, CarriedRows* out) {
    return out->load(loader, *arena_, "model.", kCarried, {});
  });
  EXPECT_TRUE(carried.empty());
  EXPECT_FALSE(carried.hold_residual());
  std::vector<double> first;
  float* residual = to_device(read(random_rows(kCarried, 8, &first), kCarried * 8));
  carried.begin(rows_of(kCarried), residual);
  EXPECT_FALSE(carried.end(rows_of(kCarried), residual, residual)) << "the sum is still to be made";
  expect_near(residual, first, 0);
}

TEST_F(CarriedRowsTest, WhatEnteredBlocksIsReadAtTheEnd) {
  config_.num_layers = 3;
  config_.depth_block = 4;
  add("model.output_attn_res_norm.weight", {8});
  add("model.output_attn_res_proj.weight", {1, 8});
  CarriedRows carried = load();
  EXPECT_TRUE(carried.empty()) << "embeddings enter the first layer as they are";
  EXPECT_FALSE(carried.hold_residual());
  float* residual = to_device(std::vector<float>(kCarried * 8, 0.5f));
  carried.depth.keep(rows_of(kCarried), 0, residual);
  const float* delta = to_device(std::vector<float>(kCarried * 8, 0.5f));
  EXPECT_TRUE(carried.end(rows_of(kCarried), residual, delta));
  // The mean of equal rows.
  expect_near(residual, std::vector<double>(8, 0.5));
}

}  // namespace
}  // namespace foretoken
