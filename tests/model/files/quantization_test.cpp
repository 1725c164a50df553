#include "model/files/quantization.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<std::optional<Quantization>> read(const std::string& quantization) {
  return read_quantization({{"quantization_config", Json::parse(quantization)}}, "config.json");
}

TEST(Quantization, Layouts) {
  EXPECT_FALSE(read_quantization(Json::object(), "").value().has_value());
  const auto gptq =
      read(R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": true})").value();
  EXPECT_EQ(gptq->layout, PackLayout::kGptq);
  EXPECT_EQ(gptq->bits, 8);
  EXPECT_EQ(gptq->group, -1);
  EXPECT_TRUE(gptq->stores_zero_less_one);
  EXPECT_FALSE(read(R"({"quant_method": "gptq", "checkpoint_format": "gptq_v2", "dynamic": {}})")
                   .value()
                   ->stores_zero_less_one);
  const auto awq =
      read(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "version": "GEMM"})").value();
  EXPECT_EQ(awq->layout, PackLayout::kAwq);
  EXPECT_EQ(awq->group, 64);
  const auto compressed = read(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
               "config_groups": {"group_0": {"weights": {"num_bits": 8, "strategy": "channel"}}}})")
                              .value();
  EXPECT_EQ(compressed->layout, PackLayout::kCompressed);
  EXPECT_EQ(compressed->bits, 8);
  EXPECT_EQ(compressed->group, -1);
}

TEST(Quantization, Fp8) {
  const auto blocks = read(R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                               "weight_block_size": [128, 64]})")
                          .value();
  EXPECT_EQ(blocks->layout, PackLayout::kFp8);
  EXPECT_EQ(blocks->block_rows, 128);
  EXPECT_EQ(blocks->block_cols, 64);
  const char* const others[] = {
      R"({"quant_method": "fp8", "activation_scheme": "static"})",
      R"({"quant_algo": "FP8", "kv_cache_scheme": "FP8"})",
      R"({"quant_method": "modelopt", "quant_algo": "FP8"})",
      R"({"quant_method": "compressed-tensors", "format": "float-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float",
                                              "strategy": "channel"},
                                  "input_activations": {"num_bits": 8, "dynamic": true}}}})"};
  for (const char* json : others) {
    const auto found = read(json);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->layout, PackLayout::kFp8) << json;
    EXPECT_EQ(found.value()->block_rows, 0);
  }
}

TEST(Quantization, OthersAreNamedWithARemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"quant_method": "gptq", "bits": 3})", "3 bits"},
      {R"({"quant_method": "gptq", "bits": 2.5})", "bits 2.5"},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})", "checkpoint_format marlin"},
      {R"({"quant_method": "gptq", "is_marlin_format": true})", "is_marlin_format"},
      {R"({"quant_method": "gptq", "dynamic": {"x": {"bits": 8}}})", "dynamic"},
      {R"({"quant_method": "gptq", "group_size": 12})", "group_size 12"},
      {R"({"quant_method": "awq", "bits": 8})", "8 bits"},
      {R"({"quant_method": "awq", "version": "gemv"})", "version gemv"},
      {R"({"quant_method": "awq", "version": "exllama"})", "version exllama"},
      {R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})",
       "nvfp4-pack-quantized"},
      {R"({"quant_method": "compressed-tensors", "format": "float-quantized",
           "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float"}}}})",
       "weights other than floats of 8 bits"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt e5m2"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size [128]"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "weight_block_size [0,128]"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})", "config_groups"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
           "config_groups": {"g": {"weights": {"actorder": "group"}}}})",
       "actorder"},
      {R"({"quant_method": "mxfp4"})", "quant_method 'mxfp4'"},
      {R"({"quant_method": 4})", "quant_method 4"},
      {R"({})", "quant_method ''"}};
  for (const auto& [json, wanted] : cases) {
    const Status status = read(json).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << json;
    EXPECT_NE(status.message().find(wanted), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("GGUF file"), std::string::npos) << status.message();
  }
  EXPECT_EQ(read("7").status().code(), StatusCode::kInvalidArgument);
}

// What older tools wrote beside config.json.
TEST(Quantization, FilesOfTheirOwn) {
  const std::pair<const char*, const char*> files[] = {
      {"quantize_config.json", R"({"bits": 8, "group_size": 64, "desc_act": false})"},
      {"quant_config.json", R"({"w_bit": 4, "q_group_size": 64, "version": "GEMM"})"}};
  for (const auto& [name, text] : files) {
    const test::ScratchFolder folder;
    folder.write("config.json", "{}");
    folder.write(name, text);
    const auto config = read_config_json(folder.path());
    ASSERT_TRUE(config.ok()) << config.status().message();
    const auto found = read_quantization(config.value(), "config.json");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->group, 64);
  }
}

TEST(Quantization, ModelOptsFileIsNamed) {
  const test::ScratchFolder folder;
  folder.write("config.json", "{}");
  folder.write("hf_quant_config.json",
               R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}})");
  const auto found = read_quantization(read_config_json(folder.path()).value(), "config.json");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("quant_method 'modelopt' (quant_algo NVFP4)"),
            std::string::npos)
      << found.status().message();
  // The KV cache alone.
  for (const char* text :
       {R"({"quant_method": "compressed-tensors", "format": "dense", "config_groups": {},
            "kv_cache_scheme": {"num_bits": 8, "type": "float"}})",
        R"({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"})"}) {
    const nlohmann::json own = {{"quantization_config", nlohmann::json::parse(text)}};
    EXPECT_FALSE(read_quantization(own, "").value().has_value()) << text;
  }
  folder.write("hf_quant_config.json",
               R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})");
  EXPECT_FALSE(read_quantization(read_config_json(folder.path()).value(), "").value().has_value());
}

}  // namespace
}  // namespace foretoken
