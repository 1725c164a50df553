#include "model/files/fp_quant_names.h"

#include <gtest/gtest.h>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken {
namespace {

TensorView fp_quant_tensor(const char* dtype, std::vector<int64_t> shape) {
  TensorView view;
  view.name = "t";
  view.file = "file";
  view.dtype_name = dtype;
  view.shape = std::move(shape);
  return view;
}

std::vector<float> turned_elements(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  const Status status =
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

// What torch makes of the codes, turned in floats; sums of a group differ in their last bits.
TEST(FpQuantNames, GoldenMatricesAreTurnedBack) {
  const std::string folder = std::string(kSourceFolder) + "/tests/golden/quantised/fp-quant";
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().rounds_activations());
  const auto expected = SafetensorsFile::open(folder + "/expected.safetensors").value();
  EXPECT_EQ(checkpoint.value().tensors().size(), expected->tensors().size() + 1);
  for (const auto& [name, wanted] : expected->tensors()) {
    const auto found = checkpoint.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_EQ(found.value()->shape, wanted.shape) << name;
    const std::vector<float> is = turned_elements(*found.value()), was = turned_elements(wanted);
    for (size_t i = 0; i < is.size(); ++i) {
      ASSERT_NEAR(is[i], was[i], 5e-5F) << name << " " << i;
    }
  }
}

TEST(FpQuantNames, WhatIsMissingIsNamed) {
  const TensorView codes = fp_quant_tensor("U8", {4, 16}), scales = fp_quant_tensor("U8", {4, 1}),
                   turn = fp_quant_tensor("BF16", {32, 32}), none = fp_quant_tensor("BF16", {0}),
                   plain = fp_quant_tensor("BF16", {4, 32});
  std::map<std::string, const TensorView*> tensors = {{"a.qweight", &codes},
                                                      {"a.scales", &scales},
                                                      {"a.weight", &none},
                                                      {"a.forward_hadamard_matrix", &turn}};
  const auto found = find_fp_quant(tensors);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value()[0].name, "a.weight");
  EXPECT_EQ(found.value()[0].names.size(), 4u);
  EXPECT_FALSE(found.value()[0].is_nvfp4());
  const TensorView wide = fp_quant_tensor("F32", {4, 1}), narrow = fp_quant_tensor("F4", {4, 1});
  for (const TensorView* other : {&wide, &narrow}) {
    tensors["a.scales"] = other;
    EXPECT_NE(find_fp_quant(tensors).status().message().find("are read as U8"), std::string::npos);
  }
  tensors["a.scales"] = &scales;
  tensors["a.qweight"] = &wide;
  EXPECT_NE(find_fp_quant(tensors).status().message().find("is F32"), std::string::npos);
  tensors["a.qweight"] = &codes;
  tensors.erase("a.scales");
  EXPECT_NE(find_fp_quant(tensors).status().message().find("'a' of FP-Quant lacks its scales"),
            std::string::npos);
  tensors.erase("a.qweight");
  EXPECT_NE(find_fp_quant(tensors).status().message().find("qweight or dqweight"),
            std::string::npos);
  tensors["a.weight"] = &plain;
  EXPECT_NE(find_fp_quant(tensors).status().message().find("store_master_weights"),
            std::string::npos);
  tensors["a.dqweight"] = &plain;
  EXPECT_EQ(find_fp_quant(tensors).value()[0].codes, &plain);
  EXPECT_TRUE(is_fp_quant_range("a.act_global_scale"));
  EXPECT_FALSE(is_fp_quant_range("a.weight_global_scale"));
}

}  // namespace
}  // namespace foretoken
