#include "convert/gguf_conversion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gguf/container/gguf_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// A matrix of two rows of 32 floats in memory.
class GgufConversionTest : public ::testing::Test {
 protected:
  GgufConversionTest() {
    for (size_t i = 0; i < 64; ++i) values_[i] = static_cast<float>(i % 13) - 6;
    values_[0] = 2.2F;  // between two steps of the plain scale, as the next one is
    values_[32] = -2.9F;
    view_.name = "a.weight";
    view_.file = "memory";
    view_.dtype_name = "F32";
    view_.shape = {2, 32};
    view_.num_bytes = sizeof values_;
    view_.data = reinterpret_cast<const std::byte*>(values_);
    options_.output = folder_.file("x.gguf");
    options_.replaces = true;
  }
  Status write(const char* type) {
    GgufConversion conversion(options_);
    const std::vector<float> last = {1, 2};
    return conversion.run({}, {{{"a.weight", find_block_type(type), {2, 32}}, &view_}},
                          {"last", find_block_type("F32"), {2}}, last);
  }
  // An importance matrix of the older form with so many columns for the tensor.
  void use_importance(int32_t columns) {
    std::string bytes;
    const auto put = [&](auto number) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    put(int32_t{1});
    put(int32_t{8});
    bytes += "a.weight";
    put(int32_t{2});
    put(columns);
    for (int32_t i = 0; i < columns; ++i) put(i == 0 ? 1000.0F : 1.0F);
    options_.importance = ImportanceMatrix::open(folder_.write("m.dat", bytes)).value();
  }
  std::vector<float> written() {
    const auto file = GgufFile::open(options_.output);
    const GgufTensor& tensor = file.value()->tensors().at("a.weight");
    std::vector<std::byte> blocks(static_cast<size_t>(tensor.num_bytes));
    EXPECT_TRUE(file.value()->read(tensor, blocks.data()).ok());
    std::vector<float> floats(64);
    tensor.type->decode(blocks.data(), 64 / tensor.type->elements, floats.data());
    return floats;
  }

  float values_[64];
  TensorView view_;
  ConvertOptions options_;
  const test::ScratchFolder folder_;
};

TEST_F(GgufConversionTest, SameTypesAreCopied) {
  ASSERT_TRUE(write("F32").ok());
  EXPECT_EQ(written(), std::vector<float>(values_, values_ + 64));
  const auto file = GgufFile::open(options_.output);
  float last[2];
  ASSERT_TRUE(file.value()->read(file.value()->tensors().at("last"), last).ok());
  EXPECT_EQ(last[1], 2);
}

TEST_F(GgufConversionTest, ImportanceIsTakenByColumn) {
  ASSERT_TRUE(write("Q4_0").ok());
  const std::vector<float> without = written();
  use_importance(32);
  ASSERT_TRUE(write("Q4_0").ok());
  const std::vector<float> with = written();
  EXPECT_NE(with, without);
  const auto error = [&](const std::vector<float>& floats) {
    return std::abs(floats[0] - values_[0]) + std::abs(floats[32] - values_[32]);
  };
  EXPECT_LT(error(with), error(without) / 2);
  use_importance(31);
  const Status odd = write("Q4_0");
  EXPECT_NE(odd.message().find("'a.weight' has 31 columns, not 32"), std::string::npos)
      << odd.message();
}

}  // namespace
}  // namespace foretoken
