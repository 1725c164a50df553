#include "model/heads/row_layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using After = RowLayers::After;
using Floats = std::vector<float>;

TensorToWrite floats_of(const char* name, std::vector<int64_t> shape, Floats values) {
  return {name, FileDType::kF32, std::move(shape), [values = std::move(values)](std::byte* out) {
            std::memcpy(out, values.data(), values.size() * sizeof(float));
          }};
}

class RowLayersTest : public testing::Test {
 protected:
  Checkpoint files_of(const std::vector<TensorToWrite>& tensors) {
    FT_CHECK(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
    return Checkpoint::open(ModelFiles(folder_.path())).value();
  }

 private:
  const test::ScratchFolder folder_;
};

TEST_F(RowLayersTest, MatricesOneBehindTheOther) {
  const Checkpoint files =
      files_of({floats_of("a.weight", {3, 2}, {1, 2, 0, -1, 4, 0}),
                floats_of("a.bias", {3}, {0, 1, 2}), floats_of("b.weight", {1, 3}, {1, 10, 100})});
  RowLayers layers;
  EXPECT_TRUE(layers.empty());
  ASSERT_TRUE(layers.add(files, "a", After::kRelu).ok());
  ASSERT_TRUE(layers.add(files, "b", After::kNothing).ok());
  EXPECT_EQ(layers.inputs(), 2);
  EXPECT_EQ(layers.outputs(), 1);
  EXPECT_EQ(layers.run(Floats{1, 3}), Floats{7 + 0 + 600});  // 7, max(-2, 0), 6
}

TEST_F(RowLayersTest, ManyInputsAreSummed) {
  const Checkpoint files = files_of({floats_of("a.weight", {2, 100}, Floats(200, 0.5F))});
  RowLayers layers;
  ASSERT_TRUE(layers.add(files, "a", After::kNothing).ok());
  EXPECT_EQ(layers.run(Floats(100, 1)), Floats(2, 50));
}

TEST_F(RowLayersTest, ActivationsAndNorms) {
  const Checkpoint files =
      files_of({floats_of("a.weight", {2, 2}, {1, 0, 0, 1}), floats_of("n.weight", {2}, {2, 3}),
                floats_of("n.bias", {2}, {0, 1})});
  RowLayers layers;
  ASSERT_TRUE(layers.add(files, "a", After::kGelu).ok());
  EXPECT_NEAR(layers.run(Floats{1, -2}).at(0), 0.841345, 1e-5);
  EXPECT_NEAR(layers.run(Floats{1, -2}).at(1), -0.0455, 1e-4);
  ASSERT_TRUE(layers.add_norm(files, "n", 0).ok());
  const Floats normed = layers.run(Floats{1, -2});
  EXPECT_NEAR(normed.at(0), 2, 1e-5);
  EXPECT_NEAR(normed.at(1), -2, 1e-5);
}

TEST_F(RowLayersTest, NamesWhatDoesNotFit) {
  const Checkpoint files = files_of(
      {floats_of("a.weight", {3, 2}, Floats(6)), floats_of("a.bias", {2}, Floats(2)),
       floats_of("b.weight", {1, 2}, Floats(2)), floats_of("c.weight", {3, 1}, Floats(3))});
  RowLayers layers;
  EXPECT_EQ(layers.add(files, "x", After::kNothing).code(), StatusCode::kNotFound);
  EXPECT_NE(layers.add(files, "a", After::kNothing).message().find("a.bias"), std::string::npos);
  ASSERT_TRUE(layers.add(files, "c", After::kTanh).ok());
  EXPECT_NE(layers.add(files, "b", After::kNothing).message().find("b.weight"), std::string::npos);
  EXPECT_EQ(layers.add_norm(files, "b", 0).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretoken
