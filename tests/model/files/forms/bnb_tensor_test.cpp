#include "model/files/forms/bnb_tensor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/bfloat16.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<float> bnb_elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

class BnbTensors : public ::testing::TestWithParam<const char*> {};

// Bit for bit what numpy makes, whole and in pieces that begin inside bytes.
TEST_P(BnbTensors, AreReadExactly) {
  const std::string folder =
      std::string(foretoken::kSourceFolder) + "/tests/golden/quantised/" + GetParam();
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ(checkpoint.value().tensors().size(), 1u);
  const TensorView& tensor = *checkpoint.value().find("m.weight").value();
  const auto file = SafetensorsFile::open(folder + "/expected.safetensors").value();
  const TensorView& expected = file->tensors().at("m.weight");
  ASSERT_EQ(tensor.shape, expected.shape);
  const int64_t count = tensor.num_elements();
  const std::vector<float> wanted = bnb_elements(expected, 0, count);
  EXPECT_EQ(bnb_elements(tensor, 0, count), wanted);
  for (int64_t first = 0; first < count; first += 37) {
    const int64_t here = std::min<int64_t>(37, count - first);
    ASSERT_EQ(bnb_elements(tensor, first, here),
              std::vector<float>(wanted.begin() + first, wanted.begin() + first + here));
  }
  std::vector<uint16_t> bits(wanted.size());
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(tensor, 0, count, DType::kBF16, bits.data(), raw).ok());
  for (size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], bf16_from_float(wanted[i]));
}

INSTANTIATE_TEST_SUITE_P(Forms, BnbTensors,
                         ::testing::Values("bnb-nf4", "bnb-nf4-nested", "bnb-int8"));

// Parts in memory, one of them changed.
struct BnbInMemory {
  explicit BnbInMemory(const std::string& json) : state_text(json) {
    set(&codes, "U8", {16, 1}, code_bytes.data(), 16);
    set(&scales, "F32", {2}, scale_values.data(), 8);
    scales.dtype = FileDType::kF32;
    set(&table, "F32", {16}, table_values.data(), 64);
    table.dtype = FileDType::kF32;
    set(&state, "U8", {std::ssize(json)}, state_text.data(), std::ssize(json));
    parts.codes = &codes;
    parts.scales = &scales;
    parts.table = &table;
    parts.state = &state;
  }
  static void set(TensorView* view, const char* dtype, std::vector<int64_t> shape, const void* data,
                  int64_t bytes) {
    view->name = "a part";
    view->dtype = FileDType::kOther;
    view->dtype_name = dtype;
    view->shape = std::move(shape);
    view->data = static_cast<const std::byte*>(data);
    view->num_bytes = bytes;
  }
  std::string state_text;
  std::vector<uint8_t> code_bytes = std::vector<uint8_t>(16, 0x1f);
  std::vector<float> scale_values = {1, 2};
  std::vector<float> table_values = std::vector<float>(16, 0.5f);
  TensorView codes, scales, table, state;
  BnbParts parts;
};

TEST(BnbTensor, PartsThatDoNotFitAreNamed) {
  const std::string good = R"({"blocksize": 16, "shape": [4, 8]})";
  BnbInMemory whole(good);
  EXPECT_TRUE(BnbTensor::create(whole.parts).ok());
  for (const char* json :
       {"", "7", R"({"blocksize": 16})", R"({"blocksize": 0, "shape": [4, 8]})",
        R"({"blocksize": 16, "shape": [4, 9]})", R"({"blocksize": 16, "shape": [-4, -8]})",
        R"({"blocksize": 8, "shape": [4, 8]})"}) {
    BnbInMemory made(json);
    const auto tensor = BnbTensor::create(made.parts);
    ASSERT_FALSE(tensor.ok()) << json;
    EXPECT_NE(tensor.status().message().find("'a part'"), std::string::npos);
  }
  BnbInMemory narrow(good);
  narrow.table.shape = {8};
  EXPECT_FALSE(BnbTensor::create(narrow.parts).ok());
}

TEST(BnbTensor, MissingPartsAreNamed) {
  const TensorView view;
  const std::map<std::string, const TensorView*> tensors = {
      {"x.weight", &view},
      {"x.weight.quant_state.bitsandbytes__nf4", &view},
      {"x.weight.absmax", &view}};
  EXPECT_NE(find_bnb(tensors).status().message().find("'x.weight' of bitsandbytes lacks"),
            std::string::npos);
  EXPECT_TRUE(find_bnb({{"x.weight", &view}}).value().empty());
}

}  // namespace
}  // namespace foretoken
