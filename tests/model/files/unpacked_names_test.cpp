#include "model/files/unpacked_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TensorView of(const char* dtype, std::vector<int64_t> shape) {
  TensorView view;
  view.file = "x.safetensors";
  view.dtype_name = dtype;
  view.shape = std::move(shape);
  return view;
}

TEST(UnpackedNames, BelongToTheMatrixThatTheyMakeUp) {
  const TensorView any = of("U8", {4, 4});
  const std::map<std::string, const TensorView*> tensors = {{"a.bitmask", &any},
                                                            {"a.compressed", &any},
                                                            {"a.shape", &any},
                                                            {"b.weight.bitmask", &any},
                                                            {"b.weight.compressed", &any},
                                                            {"b.weight.row_offsets", &any},
                                                            {"b.weight.shape", &any},
                                                            {"c.meta", &any},
                                                            {"c.scale_packed", &any},
                                                            {"c.weight_packed", &any},
                                                            {"d.meta", &any}};
  EXPECT_TRUE(has_unpacked(tensors));
  Quantization quantization;
  quantization.bits = 8;
  const auto found = find_unpacked(tensors, quantization).value();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "a.weight");
  EXPECT_EQ(found[0].names.size(), 3u);
  EXPECT_EQ(found[0].parts.starts, nullptr);
  EXPECT_EQ(found[1].name, "b.weight");
  EXPECT_NE(found[1].parts.starts, nullptr);
  EXPECT_EQ(found[2].name, "c.weight_packed");
  EXPECT_EQ(found[2].parts.packing, Packing::kMarlin24);
  EXPECT_EQ(found[2].parts.bits, 8);
  EXPECT_NE(found[2].marlin_scales, nullptr);
}

TEST(UnpackedNames, FloatsOfSixBitsAreToldByTheirScales) {
  const TensorView codes = of("U8", {4, 48}), pairs = of("U8", {4, 32}), scales = of("U8", {4, 2});
  Quantization quantization;
  quantization.six_bits = SixBits::kE2m3;
  const auto found =
      find_unpacked({{"a.weight", &codes}, {"a.weight_scale", &scales}}, quantization).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].parts.packing, Packing::kE2m3);
  EXPECT_EQ(found[0].names, std::vector<std::string>{"a.weight"});
  EXPECT_FALSE(has_unpacked({{"a.weight", &pairs}, {"a.weight_scale", &scales}}));
}

TEST(UnpackedNames, MissingPartsAreNamed) {
  const TensorView any = of("U8", {4, 4});
  const auto problem = [](const std::map<std::string, const TensorView*>& tensors) {
    return find_unpacked(tensors, {}).status().message();
  };
  EXPECT_NE(problem({{"a.bitmask", &any}, {"a.shape", &any}}).find("'a' lacks its elements"),
            std::string::npos);
  EXPECT_NE(problem({{"a.bitmask", &any}, {"a.compressed", &any}}).find("'a' lacks its shape"),
            std::string::npos);
  EXPECT_NE(problem({{"a.meta", &any}, {"a.scale_packed", &any}}).find("lacks its weight_packed"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
