#include <gtest/gtest.h>

#include "model/files/forms/scaled_file.h"
#include "model/files/forms/scaled_tensor.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// What opening a matrix of such codes with such scales ends with; empty: it is read.
std::string block_message(const std::string& codes, const std::vector<int64_t>& of_codes,
                          const std::string& scales, const std::vector<int64_t>& of_scales,
                          const Json& quantization) {
  const auto bytes = [](const std::vector<int64_t>& shape, size_t each) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return std::string(static_cast<size_t>(count) * each, 0x38);
  };
  ScaledFile file;
  file.add("x.weight", codes, of_codes, bytes(of_codes, 1));
  file.add("x.weight_scale", scales, of_scales, bytes(of_scales, scales == "F32" ? 4 : 1));
  if (scales == "F8_E4M3") file.add_floats("x.weight_scale_2", {}, {1});
  const test::ScratchFolder folder;
  const auto checkpoint = open_scaled(folder, file, quantization);
  return checkpoint.ok() ? "" : checkpoint.status().message();
}

// Of 8 x 12 in blocks of 4 x 4.
TEST(ScaledTensorBlocks, NamedOnesAreAsManyAsTheyAre) {
  const Json blocks = {{"quant_method", "fp8"}, {"weight_block_size", {4, 4}}};
  using Shape = std::vector<int64_t>;
  for (const Shape& shape : {Shape{2, 3}, {8, 1}, {8}, {1}, Shape{}}) {
    EXPECT_EQ(block_message("F8_E4M3", {8, 12}, "F32", shape, blocks), "") << shape.size();
  }
  for (const Shape& shape : {Shape{1, 3}, {2, 1}, {2, 2}, {1, 1}, {3, 3}}) {
    EXPECT_NE(block_message("F8_E4M3", {8, 12}, "F32", shape, blocks)
                  .find("no scales of 'x.weight' of shape [8, 12]"),
              std::string::npos)
        << shape[0] << " x " << shape[1];
  }
  EXPECT_EQ(block_message("F8_E4M3", {3, 4}, "F32", {1, 1}, blocks), "") << "within one";
  EXPECT_NE(block_message("F8_E4M3", {2, 8, 4}, "F32", {2, 1, 1}, blocks), "") << "of a stack";
}

// Of floats of four bits the groups have one size in every file.
TEST(ScaledTensorBlocks, GroupsOfFourBitsHaveOneSize) {
  const Json nvfp4 = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}};
  const Json mxfp4 = {{"quant_method", "modelopt"}, {"quant_algo", "MXFP4"}};
  EXPECT_EQ(block_message("U8", {3, 32}, "F8_E4M3", {3, 4}, nvfp4), "");
  EXPECT_EQ(block_message("U8", {3, 32}, "U8", {3, 2}, mxfp4), "");
  for (const int64_t across : {1, 2}) {
    EXPECT_NE(block_message("U8", {3, 32}, "F8_E4M3", {3, across}, nvfp4), "") << across;
  }
  EXPECT_NE(block_message("U8", {3, 32}, "U8", {3, 1}, mxfp4).find("'x.weight_scale' has shape"),
            std::string::npos);
}

// Where a method names which layers are NVFP4 with scales of 16 columns and which with scales
// of 32.
TEST(ScaledTensorBlocks, MixedGroupsOfFourBitsHaveTwoSizes) {
  Json mixed = {{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}};
  mixed["quantized_layers"] = {{"a", {{"quant_algo", "NVFP4"}}},
                               {"x", {{"quant_algo", "W4A8_NVFP4_FP8"}}}};
  Json groups = {{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}};
  for (const int size : {16, 32}) {
    groups["config_groups"][std::to_string(size)]["weights"] = {
        {"num_bits", 4}, {"type", "float"}, {"group_size", size}};
  }
  Json longer = mixed;
  longer["quantized_layers"].erase("a");
  for (const Json& both : {mixed, groups}) {
    for (const int64_t across : {1, 2, 3, 4, 8}) {
      const std::string message = block_message("U8", {3, 32}, "F8_E4M3", {3, across}, both);
      EXPECT_EQ(message.empty(), across == 4 || across == 2) << across << ": " << message;
    }
    EXPECT_NE(block_message("U8", {3, 32}, "U8", {3, 1}, both), "") << "MXFP4";
  }
  EXPECT_EQ(block_message("U8", {3, 32}, "F8_E4M3", {3, 2}, longer), "");
  EXPECT_NE(block_message("U8", {3, 32}, "F8_E4M3", {3, 4}, longer), "");
}

// Where the method has floats alone, whichever names it; DeepSeek V4's bytes are two floats.
TEST(ScaledTensorBlocks, IntegersAreNoFloatsOfEightBits) {
  const Json fp8 = {{"quant_method", "fp8"}};
  const Json modelopt = {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}};
  for (const Json& quantization : {fp8, modelopt}) {
    const std::string message = block_message("I8", {3, 32}, "F32", {3, 1}, quantization);
    EXPECT_NE(message.find("'x.weight' is I8, but quantization_config (quant_method '" +
                           quantization["quant_method"].get<std::string>() + "')"),
              std::string::npos)
        << message;
    EXPECT_EQ(block_message("F8_E4M3", {3, 32}, "F32", {3, 1}, quantization), "");
  }
  const auto mixed_of = [](const char* algorithm) {
    return Json{
        {"quant_method", "modelopt"},
        {"quant_algo", "MIXED_PRECISION"},
        {"quantized_layers", {{"a", {{"quant_algo", "FP8"}}}, {"x", {{"quant_algo", algorithm}}}}}};
  };
  Json groups = {{"quant_method", "fp8"}, {"quant_algo", "MIXED_PRECISION"}};
  groups["config_groups"]["g"]["weights"] = {{"num_bits", 4}, {"type", "float"}};
  for (const Json& quantization :
       {Json{{"quant_method", "fp8"}, {"fmt", "e5m2"}}, mixed_of("W4A8_NVFP4_FP8"), groups,
        Json{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}}) {
    EXPECT_NE(block_message("I8", {3, 32}, "F32", {3, 1}, quantization).find("are floats"),
              std::string::npos)
        << quantization;
  }
  for (const Json& quantization :
       {Json{{"quant_method", "w8a8_int8"}}, mixed_of("W8A16"), mixed_of("w8a8_sq_per_channel"),
        Json{{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}}}) {
    EXPECT_EQ(block_message("I8", {3, 32}, "F32", {3, 1}, quantization), "") << quantization;
  }
  ScaledFile pairs;
  pairs.add("x.weight", "I8", {2, 16}, std::string(32, 0x21));
  pairs.add("x.scale", "F8_E8M0", {2, 1}, std::string(2, 0x70));
  const test::ScratchFolder folder;
  EXPECT_TRUE(open_scaled(folder, pairs, fp8).ok());
}

}  // namespace
}  // namespace foretoken
