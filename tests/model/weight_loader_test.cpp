#include "model/weight_loader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bfloat16.h"
#include "model/forward_harness.h"
#include "model/safetensors_writer.h"
#include "model/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

TensorToWrite floats(const std::string& name, std::vector<int64_t> shape,
                     std::vector<float> values) {
  return {name, FileDType::kF32, std::move(shape), [values](std::byte* out) {
            std::memcpy(out, values.data(), values.size() * sizeof(float));
          }};
}

// A loader over a checkpoint of a matrix, two vectors and one tensor of a foreign type.
class WeightLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<TensorToWrite> tensors = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6.0009765625f}),
                                                floats("a", {2}, {7, 8}), floats("b", {1}, {9})};
    ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
    checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  }

  std::unique_ptr<WeightLoader> loader(DType dtype) {
    return WeightLoader::create(model_device(), &*checkpoint_, dtype, 9 * 4, {}, nullptr).value();
  }

  ScratchFolder folder_;
  std::optional<Checkpoint> checkpoint_;
  // Pinned, so that the test may read what was loaded.
  Arena arena_{model_device(), MemoryKind::kPinned};
};

TEST_F(WeightLoaderTest, TablesAndVectors) {
  const auto source = loader(DType::kF32);
  const auto table = source->table(arena_, "w", 2, 3);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(static_cast<const float*>(table.value())[5], 6.0009765625f);
  const TensorPart parts[] = {{"a", 2}, {"b", 1}};
  const auto vector = source->vector(arena_, parts, 0);
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  EXPECT_EQ(vector.value()[0], 7);
  EXPECT_EQ(vector.value()[2], 9);
  EXPECT_EQ(source->bytes_loaded(), 9 * 4);
  EXPECT_TRUE(source->check_all_used("X").ok());
}

TEST_F(WeightLoaderTest, ConvertsToTheModelsType) {
  const auto source = loader(DType::kBF16);
  const auto table = source->table(arena_, "w", 2, 3);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(static_cast<const uint16_t*>(table.value())[5], bf16_from_float(6));
  const TensorPart part[] = {{"w", 2}};
  EXPECT_TRUE(source->matrix(part, 3).ok());
}

TEST_F(WeightLoaderTest, SingleRows) {
  const auto source = loader(DType::kF32);
  const int32_t ids[] = {1, 0, 1};
  ASSERT_TRUE(source->matrix_rows({"w", 2}, 3, ids).ok());
  EXPECT_EQ(source->bytes_loaded(), 9 * 4);
  EXPECT_FALSE(source->matrix_rows({"w", 3}, 2, ids).ok());
}

TEST_F(WeightLoaderTest, IntegersAndOptionalTensors) {
  const int64_t values[] = {5, -6};
  const TensorToWrite tensor{
      "ids", FileDType::kI64, {2}, [&](std::byte* out) { std::memcpy(out, values, 16); }};
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), {&tensor, 1}).ok());
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto source = loader(DType::kF32);
  EXPECT_EQ(source->integers("ids", 2).value(), (std::vector<int64_t>{5, -6}));
  EXPECT_TRUE(source->check_all_used("X").ok());
  EXPECT_EQ(source->integers("ids", 3).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(source->has_optional("ids"));
  EXPECT_FALSE(source->has_optional("w"));
  const auto random =
      WeightLoader::create(model_device(), nullptr, DType::kF32, 36, {}, nullptr).value();
  EXPECT_TRUE(random->has("w"));
  EXPECT_FALSE(random->has_optional("w"));
}

TEST_F(WeightLoaderTest, WrongShapeIsNamed) {
  const auto source = loader(DType::kF32);
  const TensorPart part[] = {{"w", 3}};
  const auto matrix = source->matrix(part, 2);
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.status().code(), StatusCode::kInvalidArgument);
  const std::string& message = matrix.status().message();
  for (const char* said : {"model.safetensors", "tensor 'w'", "[2, 3]", "[3, 2]"}) {
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

TEST_F(WeightLoaderTest, MissingAndUnusedTensorsAreNamed) {
  const auto source = loader(DType::kF32);
  EXPECT_EQ(source->table(arena_, "q", 1, 1).status().code(), StatusCode::kNotFound);
  const Status unused = source->check_all_used("LlamaForCausalLM");
  EXPECT_EQ(unused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unused.message().find("LlamaForCausalLM has no use for tensor 'a'"), std::string::npos);
  source->ignore("a");
  EXPECT_NE(source->check_all_used("X").message().find("'b'"), std::string::npos);
}

TEST_F(WeightLoaderTest, ForeignTypeIsNamed) {
  std::string file(8, '\0');
  const std::string header = R"({"w":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]}})";
  file[0] = static_cast<char>(header.size());
  folder_.write("model.safetensors", file + header + std::string(4, '\0'));
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto table = loader(DType::kF32)->table(arena_, "w", 1, 2);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(table.status().message().find("tensor 'w' has dtype I16"), std::string::npos);
}

TEST_F(WeightLoaderTest, StopsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  const auto source =
      WeightLoader::create(model_device(), &*checkpoint_, DType::kF32, 36, {}, &cancelled).value();
  EXPECT_EQ(source->table(arena_, "w", 2, 3).status().code(), StatusCode::kAborted);
}

TEST_F(WeightLoaderTest, TooMuchForTheDevice) {
  const auto source = WeightLoader::create(model_device(), &*checkpoint_, DType::kF32,
                                           int64_t{1} << 60, {}, nullptr);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace foretoken
