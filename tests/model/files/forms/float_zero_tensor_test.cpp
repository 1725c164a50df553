#include "model/files/forms/float_zero_tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include "base/bfloat16.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<float> zero_elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

class WeightTools : public ::testing::TestWithParam<const char*> {};

// What the tools' own dequantising makes, whole and in pieces that begin inside bytes and groups.
TEST_P(WeightTools, AreReadExactly) {
  const std::string folder = std::string(kSourceFolder) + "/tests/golden/quantised/" + GetParam();
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ(checkpoint.value().tensors().size(), 1u);
  const TensorView& tensor = *checkpoint.value().find("m.weight").value();
  const auto file = SafetensorsFile::open(folder + "/expected.safetensors").value();
  const TensorView& expected = file->tensors().at("m.weight");
  ASSERT_EQ(tensor.shape, expected.shape);
  const int64_t count = tensor.num_elements();
  const std::vector<float> wanted = zero_elements(expected, 0, count);
  EXPECT_EQ(zero_elements(tensor, 0, count), wanted);
  for (int64_t first = 0; first < count; first += 37) {
    const int64_t here = std::min<int64_t>(37, count - first);
    ASSERT_EQ(zero_elements(tensor, first, here),
              std::vector<float>(wanted.begin() + first, wanted.begin() + first + here))
        << first;
  }
  std::vector<uint16_t> bits(wanted.size());
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(tensor, 0, count, DType::kBF16, bits.data(), raw).ok());
  for (size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], bf16_from_float(wanted[i]));
}

INSTANTIATE_TEST_SUITE_P(Forms, WeightTools,
                         ::testing::Values("hqq-4", "hqq-3-columns", "hqq-2", "hqq-8",
                                           "torchao-int8", "torchao-float8", "torchao-intx",
                                           "torchao-int4", "torchao-int8-bin", "torchao-float8-bin",
                                           "torchao-intx-bin", "modelopt-int4-awq",
                                           "modelopt-nvfp4-awq", "fp8-e5m2"));

// Tensors in memory by name.
class Tensors {
 public:
  void add(const std::string& name, const char* dtype, std::vector<int64_t> shape,
           std::vector<uint8_t> bytes) {
    auto& [data, view] = all_[name];
    data = std::move(bytes);
    view.name = name;
    view.file = "x.safetensors";
    view.dtype_name = dtype;
    const std::string type = dtype;
    view.dtype = type == "F32" ? FileDType::kF32 : FileDType::kOther;
    view.shape = std::move(shape);
    view.num_bytes = std::ssize(data);
    view.data = reinterpret_cast<const std::byte*>(data.data());
  }
  void add_text(const std::string& name, const std::string& text) {
    add(name, "U8", {std::ssize(text)}, {text.begin(), text.end()});
  }
  void add_number(const std::string& name, uint8_t number) { add(name, "U8", {}, {number}); }
  std::map<std::string, const TensorView*> map() const {
    std::map<std::string, const TensorView*> named;
    for (const auto& [name, entry] : all_) named[name] = &entry.second;
    return named;
  }

 private:
  std::map<std::string, std::pair<std::vector<uint8_t>, TensorView>> all_;
};

// Of HQQ: [4, 8] with 4 bits in groups of 8 elements.
Tensors hqq_tensors() {
  Tensors tensors;
  tensors.add("x.W_q", "U8", {2, 8}, std::vector<uint8_t>(16, 0x21));
  tensors.add("x.scale", "F32", {4, 1}, std::vector<uint8_t>(16, 0));
  tensors.add("x.zero", "F32", {4, 1}, std::vector<uint8_t>(16, 0));
  std::vector<uint8_t> sizes(8, 0);
  sizes[0] = 4;
  sizes[4] = 8;
  tensors.add("x.shape", "I32", {2}, sizes);
  tensors.add_number("x.nbits", 4);
  tensors.add_number("x.axis", 1);
  tensors.add_text("x.packing", "4bit_u8");
  return tensors;
}

std::string message_of(const std::function<void(Tensors&)>& change) {
  Tensors tensors = hqq_tensors();
  change(tensors);
  const auto found = find_float_zeros(tensors.map());
  if (!found.ok()) return found.status().message();
  if (found.value().size() != 1) return "none";
  return FloatZeroTensor::create(found.value()[0]).status().message();
}

TEST(FloatZeroTensor, PartsThatDoNotFitAreNamed) {
  EXPECT_EQ(message_of([](Tensors&) {}), "");
  const std::pair<std::string, std::function<void(Tensors&)>> cases[] = {
      {"'x.packing'", [](Tensors& t) { t.add_text("x.packing", "8bit_u8"); }},
      {"'x.packing'", [](Tensors& t) { t.add_number("x.nbits", 5); }},
      {"'x.W_q'", [](Tensors& t) { t.add_number("x.axis", 2); }},
      {"'x.W_q'", [](Tensors& t) { t.add("x.W_q", "U8", {1, 8}, std::vector<uint8_t>(8, 0)); }},
      {"'x.scale'", [](Tensors& t) { t.add("x.scale", "U8", {4, 1}, {1, 2, 3, 4}); }},
      {"'x.zero'", [](Tensors& t) { t.add("x.zero", "F32", {1, 1}, {0, 0, 0, 0}); }},
      {"'x.compute_dtype'", [](Tensors& t) { t.add_text("x.compute_dtype", "torch.int8"); }},
      {"with quant_scale, which is not read", [](Tensors& t) { t.add_number("x.quant_scale", 1); }},
      {"with view_as_float, which is not read",
       [](Tensors& t) { t.add_number("x.view_as_float", 1); }}};
  for (const auto& [wanted, change] : cases) {
    const std::string message = message_of(change);
    EXPECT_NE(message.find(wanted), std::string::npos) << wanted << ": " << message;
  }
  Tensors lacking;
  lacking.add("x.W_q", "U8", {2, 8}, std::vector<uint8_t>(16, 0));
  EXPECT_NE(find_float_zeros(lacking.map()).status().message().find("'x.W_q' lacks its scale"),
            std::string::npos);
}

// Four bits of torchao whose scales are of no plain packing.
TEST(FloatZeroTensor, TorchAoTilesAreRefused) {
  Tensors tensors;
  tensors.add("x._weight_qdata", "I8", {4, 8}, std::vector<uint8_t>(32, 0));
  tensors.add("x._weight_scale", "F32", {1, 2}, std::vector<uint8_t>(8, 0));
  tensors.add("x._weight_zero_point", "F32", {1, 2}, std::vector<uint8_t>(8, 0));
  const auto found = find_float_zeros(tensors.map()).value();
  ASSERT_EQ(found.size(), 1u);
  const Status status = FloatZeroTensor::create(found[0]).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("int4_packing_format plain"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
