#include "model/files/containers/unpacked_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<float> unpacked_elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

class UnpackedFolders : public ::testing::TestWithParam<const char*> {};

// What the packages had before they packed it, whole, in pieces, from the last row to the first,
// and as it stays quantised.
TEST_P(UnpackedFolders, AreReadExactly) {
  const std::string name = GetParam(), folder = kSourceFolder + ("/tests/golden/quantised/" + name);
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ(checkpoint.value().tensors().size(), 1u);
  const TensorView& tensor = *checkpoint.value().find("m.weight").value();
  const auto file = SafetensorsFile::open(folder + "/expected.safetensors").value();
  const TensorView& expected = file->tensors().at("m.weight");
  ASSERT_EQ(tensor.shape, expected.shape);
  const int64_t count = tensor.num_elements(), cols = tensor.shape[1];
  const std::vector<float> wanted = unpacked_elements(expected, 0, count);
  EXPECT_EQ(unpacked_elements(tensor, 0, count), wanted);
  for (int64_t first = 0; first < count; first += 1237) {
    const int64_t here = std::min<int64_t>(1237, count - first);
    ASSERT_EQ(unpacked_elements(tensor, first, here),
              std::vector<float>(wanted.begin() + first, wanted.begin() + first + here));
  }
  for (int64_t row = tensor.shape[0]; row-- > 0;) {
    ASSERT_EQ(unpacked_elements(tensor, row * cols, cols),
              std::vector<float>(wanted.begin() + row * cols, wanted.begin() + (row + 1) * cols));
  }
  const QuantForm* form = quantized_form(tensor);
  const std::set<std::string> kept = {"marlin-24-4",    "marlin-24-4-short", "marlin-24-8",
                                      "quark-int4",     "quark-uint4",       "quark-fp6-e3m2",
                                      "quark-fp6-e2m3", "sparse-24-fp8"};
  ASSERT_EQ(form != nullptr && form->bits < 16, kept.contains(name));
  if (!kept.contains(name)) return;
  std::vector<std::byte> row(static_cast<size_t>(quantized_row_bytes(*form, cols))), raw;
  std::vector<float> values(static_cast<size_t>(cols));
  for (int64_t r = 0; r < tensor.shape[0]; ++r) {
    ASSERT_TRUE(read_quantized_rows(tensor, r, 1, row.data(), raw).ok());
    dequantize_row(*form, row.data(), cols, values.data());
    ASSERT_EQ(values,
              std::vector<float>(wanted.begin() + r * cols, wanted.begin() + (r + 1) * cols));
  }
}

INSTANTIATE_TEST_SUITE_P(Packages, UnpackedFolders,
                         ::testing::Values("sparse-24", "sparse-24-fp8", "sparse-bitmask",
                                           "marlin-24-4", "marlin-24-4-short", "marlin-24-8",
                                           "quark-fp6-e3m2", "quark-fp6-e2m3", "quark-int4",
                                           "quark-uint4"));

TEST(UnpackedFolders, KeepTheBitsOfFourBitWords) {
  const auto checkpoint =
      Checkpoint::open(std::string(kSourceFolder) + "/tests/golden/quantised/marlin-24-4").value();
  const QuantForm* form = quantized_form(*checkpoint.find("m.weight").value());
  ASSERT_NE(form, nullptr);
  EXPECT_EQ(form->bits, 4);
  EXPECT_EQ(form->group, 128);
}

// A tensor in memory.
struct Held {
  Held(const std::string& name, const char* dtype, std::vector<int64_t> shape,
       std::vector<uint8_t> bytes)
      : data(std::move(bytes)) {
    view.name = name;
    view.file = "x.safetensors";
    view.dtype_name = dtype;
    view.dtype = view.dtype_name == "F16"   ? FileDType::kF16
                 : view.dtype_name == "I64" ? FileDType::kI64
                                            : FileDType::kOther;
    view.shape = std::move(shape);
    view.num_bytes = std::ssize(data);
    view.data = reinterpret_cast<const std::byte*>(data.data());
  }
  std::vector<uint8_t> data;
  TensorView view;
};

std::vector<uint8_t> two_integers(uint8_t rows, uint8_t cols) {
  std::vector<uint8_t> bytes(16, 0);
  bytes[0] = rows;
  bytes[8] = cols;
  return bytes;
}

std::string masked_problem(Held values, Held mask, Held shape) {
  UnpackedParts parts;
  parts.values = &values.view;
  parts.places = &mask.view;
  parts.shape = &shape.view;
  const auto made = UnpackedTensor::create(parts);
  return made.ok() ? "" : made.status().message();
}

TEST(UnpackedTensor, DamagedMasksAreNamed) {
  const Held values("x.compressed", "F16", {2, 4}, std::vector<uint8_t>(16, 1));
  const Held mask("x.bitmask", "U8", {2, 1}, {0x33, 0x99});
  const Held shape("x.shape", "I64", {2, 1}, two_integers(2, 8));
  EXPECT_EQ(masked_problem(values, mask, shape), "");
  const Held crowded("x.bitmask", "U8", {2, 1}, {0x37, 0x99});
  const Held wide("x.bitmask", "U8", {2, 2}, std::vector<uint8_t>(4, 0x0f));
  const Held few("x.compressed", "F16", {1, 4}, std::vector<uint8_t>(8, 1));
  const Held none("x.shape", "I64", {2, 1}, two_integers(0, 8));
  const Held text("x.shape", "F16", {8}, two_integers(2, 8));
  EXPECT_NE(masked_problem(values, crowded, shape).find("'x.bitmask'"), std::string::npos);
  EXPECT_NE(masked_problem(values, wide, shape).find("'x.bitmask'"), std::string::npos);
  EXPECT_NE(masked_problem(few, mask, shape).find("is not"), std::string::npos);
  EXPECT_NE(masked_problem(values, mask, none).find("'x.shape'"), std::string::npos);
  EXPECT_NE(masked_problem(values, mask, text).find("must be I64 or I32"), std::string::npos);
}

TEST(UnpackedTensor, OtherShapesOfMarlinAreNamed) {
  const auto problem = [](const Held& words, const Held& places) {
    UnpackedParts parts;
    parts.packing = Packing::kMarlin24;
    parts.values = &words.view;
    parts.places = &places.view;
    const auto made = UnpackedTensor::create(parts);
    return made.ok() ? std::string() : made.status().message();
  };
  const Held words("x.weight_packed", "I32", {1, 128}, std::vector<uint8_t>(512, 0));
  const Held places("x.meta", "I16", {1, 128}, std::vector<uint8_t>(256, 0xee));
  EXPECT_EQ(problem(words, places), "");
  const Held narrow("x.weight_packed", "I32", {1, 64}, std::vector<uint8_t>(256, 0));
  const Held half("x.meta", "I16", {1, 64}, std::vector<uint8_t>(128, 0));
  EXPECT_NE(problem(narrow, places).find("'x.weight_packed'"), std::string::npos);
  EXPECT_NE(problem(words, half).find("'x.meta'"), std::string::npos);
  const Held scales("x.scale_packed", "F16", {1, 32}, std::vector<uint8_t>(64, 0));
  EXPECT_NE(marlin_scales(scales.view, 64).status().message().find("'x.scale_packed'"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
