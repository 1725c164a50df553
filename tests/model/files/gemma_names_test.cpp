#include "model/files/gemma_names.h"

#include <gtest/gtest.h>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using OrderedJson = nlohmann::ordered_json;

TensorView gemma_tensor(const char* name, const char* dtype, std::vector<int64_t> shape) {
  TensorView view;
  view.name = name;
  view.file = "file";
  view.dtype_name = dtype;
  view.dtype = view.dtype_name == "F32" ? FileDType::kF32 : FileDType::kOther;
  view.shape = std::move(shape);
  return view;
}

std::vector<float> gemma_elements(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  const Status status =
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

const std::string kGemmaFolder = std::string(kSourceFolder) + "/tests/golden/quantised/gemma";

// Bit for bit what transformers' own dequantising makes in floats; scales of activations and of
// caches are gone.
TEST(GemmaNames, GoldenMatricesAndTablesAreReadExactly) {
  const auto checkpoint = Checkpoint::open(kGemmaFolder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().rounds_activations());
  const auto expected = SafetensorsFile::open(kGemmaFolder + "/expected.safetensors").value();
  EXPECT_EQ(expected->tensors().size(), 6u);
  EXPECT_EQ(checkpoint.value().tensors().size(), 7u);
  for (const auto& [name, wanted] : expected->tensors()) {
    const auto found = checkpoint.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->shape, wanted.shape) << name;
    EXPECT_EQ(gemma_elements(*found.value()), gemma_elements(wanted)) << name;
  }
}

// Of patterns that both hold the first one counts, in the order of the file.
TEST(GemmaNames, BitsAreThoseOfTheFirstPattern) {
  const TensorView codes = gemma_tensor("model.layers.3.mlp.up.weight", "U8", {2, 8});
  const TensorView other = gemma_tensor("model.layers.23.mlp.up.weight", "U8", {2, 8});
  const TensorView scales = gemma_tensor("s", "F32", {2, 1});
  const std::map<std::string, const TensorView*> tensors = {{"a.weight", &codes},
                                                            {"a.weight_scale", &scales},
                                                            {"b.weight", &other},
                                                            {"b.weight_scale", &scales}};
  EXPECT_TRUE(has_gemma(tensors));
  const auto said = OrderedJson::parse(
      R"({"num_bits": 4, "module_quant_configs": {"layers\\.\\d\\.mlp": {"num_bits": 4},
          "\\.mlp\\.": {"num_bits": 2}}})");
  const auto found = find_gemma(tensors, said, "config.json");
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found.value().size(), 2u);
  EXPECT_EQ(found.value()[0].bits, 4);
  EXPECT_EQ(found.value()[1].bits, 2);
  EXPECT_EQ(found.value()[1].names, (std::vector<std::string>{"b.weight", "b.weight_scale"}));
  EXPECT_TRUE(is_gemma_range("x.input_activation_scale"));
  EXPECT_FALSE(is_gemma_range("x.weight_scale"));
}

TEST(GemmaNames, WhatCannotBeReadIsNamed) {
  const TensorView codes = gemma_tensor("table.embedding_quantized", "U8", {2, 8});
  const std::map<std::string, const TensorView*> tensors = {{"table.embedding_quantized", &codes}};
  const auto problem = [&](const char* said) {
    return find_gemma(tensors, OrderedJson::parse(said), "config.json").status().message();
  };
  EXPECT_NE(problem("{}").find("lacks its scales"), std::string::npos);
  EXPECT_NE(problem(R"({"num_bits": 3})").find("'num_bits'"), std::string::npos);
  EXPECT_NE(problem(R"({"module_quant_configs": {"(a": {}}})").find("'(a'"), std::string::npos);
  EXPECT_NE(problem(R"({"module_quant_configs": {"(a+)+b": {}}})").find("no pattern"),
            std::string::npos);
  const std::string long_one =
      R"({"module_quant_configs": {")" + std::string(300, 'a') + "\": {}}}";
  EXPECT_NE(problem(long_one.c_str()).find("no pattern"), std::string::npos);
}

// Without a name of the method the bytes are not taken for another tool's in silence.
TEST(GemmaNames, CodesOfWrongBitsAreNamed) {
  const test::ScratchFolder folder;
  std::filesystem::copy(kGemmaFolder + "/model.safetensors", folder.file("model.safetensors"));
  folder.write("config.json",
               R"({"quantization_config": {"quant_method": "gemma", "num_bits": 8}})");
  const Status eight = Checkpoint::open(folder.path()).status();
  EXPECT_NE(eight.message().find("codes of 8 bits are read as I8"), std::string::npos)
      << eight.message();
}

}  // namespace
}  // namespace foretoken
