#include "model/files/forms/affine_tensor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bfloat16.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<float> elements_of_mlx(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

class MlxTensors : public ::testing::TestWithParam<const char*> {
 protected:
  MlxTensors()
      : folder_(std::string(kSourceFolder) + "/tests/golden/quantised/mlx"),
        checkpoint_(Checkpoint::open(folder_)) {}
  void SetUp() override {
    ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status().message();
    file_ = SafetensorsFile::open(folder_ + "/expected.safetensors").value();
    const std::string name = GetParam() + std::string(".weight");
    tensor_ = checkpoint_.value().find(name).value();
    const TensorView& expected = file_->tensors().at(name);
    ASSERT_EQ(tensor_->shape, expected.shape);
    wanted_ = elements_of_mlx(expected, 0, expected.num_elements());
  }

  std::string folder_;
  Result<Checkpoint> checkpoint_;
  std::unique_ptr<SafetensorsFile> file_;
  const TensorView* tensor_ = nullptr;
  std::vector<float> wanted_;
};

// Bit for bit what MLX's own dequantising makes, whole, in pieces and rounded to bfloat16.
TEST_P(MlxTensors, AreReadExactly) {
  const int64_t count = tensor_->num_elements();
  EXPECT_EQ(elements_of_mlx(*tensor_, 0, count), wanted_);
  for (int64_t first = 0; first < count; first += 37) {
    const int64_t here = std::min<int64_t>(37, count - first);
    ASSERT_EQ(elements_of_mlx(*tensor_, first, here),
              std::vector<float>(wanted_.begin() + first, wanted_.begin() + first + here));
  }
  std::vector<uint16_t> bits(wanted_.size());
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(*tensor_, 0, count, DType::kBF16, bits.data(), raw).ok());
  for (size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], bf16_from_float(wanted_[i]));
}

// Rows that stay quantised have the same values; where scales are no halves there are none.
TEST_P(MlxTensors, StayQuantised) {
  const QuantForm* form = quantized_form(*tensor_);
  ASSERT_EQ(form != nullptr, std::string(GetParam()) != "a4_floats");
  if (form == nullptr || tensor_->affine == nullptr) return;
  const int64_t k = tensor_->shape.back(), rows = tensor_->num_elements() / k;
  std::vector<std::byte> all(static_cast<size_t>(rows * quantized_row_bytes(*form, k)));
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_quantized_rows(*tensor_, 0, rows, all.data(), raw).ok());
  std::vector<float> values(wanted_.size());
  for (int64_t row = 0; row < rows; ++row) {
    dequantize_row(*form, all.data() + row * quantized_row_bytes(*form, k), k,
                   values.data() + row * k);
  }
  EXPECT_EQ(values, wanted_);
}

INSTANTIATE_TEST_SUITE_P(Modes, MlxTensors,
                         ::testing::Values("a2", "a3", "a4", "a4_32", "a4_floats", "a5", "a6", "a8",
                                           "a8_stack", "mxfp4", "mxfp8", "nvfp4"));

// transformers' `metal` has MLX's words, and X.qbiases.
TEST(AffineTensor, MetalsWordsAreReadExactly) {
  const std::string folder = std::string(kSourceFolder) + "/tests/golden/quantised/metal";
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto expected = SafetensorsFile::open(folder + "/expected.safetensors").value();
  EXPECT_EQ(checkpoint.value().tensors().size(), expected->tensors().size());
  for (const auto& [name, wanted] : expected->tensors()) {
    const auto found = checkpoint.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(elements_of_mlx(*found.value(), 0, wanted.num_elements()),
              elements_of_mlx(wanted, 0, wanted.num_elements()))
        << name;
  }
}

TensorView view_in_memory(const char* type, FileDType dtype, std::vector<int64_t> shape,
                          const void* data, int64_t bytes) {
  TensorView view;
  view.name = "m.weight";
  view.file = "file";
  view.dtype_name = type;
  view.dtype = dtype;
  view.shape = std::move(shape);
  view.data = static_cast<const std::byte*>(data);
  view.num_bytes = bytes;
  return view;
}

TEST(AffineTensor, RefusesShapesOfNoMatrix) {
  const std::vector<uint32_t> words(16);
  const std::vector<float> numbers(4, 1.0F);
  const TensorView codes = view_in_memory("U32", FileDType::kOther, {2, 8}, words.data(), 64);
  const TensorView scales = view_in_memory("F32", FileDType::kF32, {2, 2}, numbers.data(), 16);
  const auto made = AffineTensor::create({&codes, &scales, &scales}, 32);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value().bits(), 4);
  EXPECT_EQ(made.value().shape(), (std::vector<int64_t>{2, 64}));
  for (const int64_t group : {0, 24, 64 << 20}) {
    const auto refused = AffineTensor::create({&codes, &scales, &scales}, group);
    ASSERT_FALSE(refused.ok()) << group;
    EXPECT_NE(refused.status().message().find("'quantization' of config.json"), std::string::npos)
        << refused.status().message();
  }
  const TensorView one_scale = view_in_memory("F32", FileDType::kF32, {2, 1}, numbers.data(), 8);
  EXPECT_FALSE(AffineTensor::create({&codes, &scales, &one_scale}, 32).ok());
  const TensorView signed_codes =
      view_in_memory("I32", FileDType::kOther, {2, 8}, words.data(), 64);
  EXPECT_FALSE(AffineTensor::create({&signed_codes, &scales, &scales}, 32).ok());
}

}  // namespace
}  // namespace foretoken
