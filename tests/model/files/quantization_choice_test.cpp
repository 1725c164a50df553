#include "model/files/quantization_choice.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

Result<WeightRounding> choose(const char* name, const char* quantization) {
  const test::ScratchFolder folder;
  const std::string field = std::string("\"quantization_config\": ") + quantization;
  folder.write("config.json", *quantization != 0 ? "{" + field + "}" : "{}");
  return choose_quantization(name, folder.path());
}

constexpr const char* kGptqConfig = R"({"quant_method": "gptq", "bits": 4})";
constexpr const char* kFp8Config = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
constexpr const char* kNvfp4Config = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";
constexpr const char* kFp8Compressed =
    R"({"quant_method": "compressed-tensors", "format": "float-quantized",
        "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}})";

TEST(QuantizationChoice, Fp8RoundsWhatIsNotQuantised) {
  EXPECT_EQ(choose("fp8", "").value(), WeightRounding::kFp8);
  EXPECT_EQ(choose("ptpc_fp8", "").value(), WeightRounding::kFp8);
  EXPECT_EQ(choose("", "").value(), WeightRounding::kNone);
  EXPECT_EQ(choose("none", kGptqConfig).value(), WeightRounding::kNone);
}

TEST(QuantizationChoice, TheMethodOfTheFilesChangesNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"gptq", kGptqConfig},
      {"gptq_marlin", kGptqConfig},
      {"fp8", kFp8Config},
      {"modelopt_fp4", kNvfp4Config},
      {"modelopt", kNvfp4Config},
      {"fp8", kFp8Compressed},
      {"compressed-tensors", kFp8Compressed},
      {"modelopt", R"({"quant_algo": "FP8"})"},
      {"torchao", R"({"quant_method": "torchao"})"},
      {"fp_quant", R"({"quant_method": "fp_quant"})"},
      {"moe_wna16", kGptqConfig},
      {"moe_wna16", R"({"quant_method": "awq", "bits": 4})"},
      {"awq_marlin", R"({"quant_method": "awq", "bits": 4})"}};
  for (const auto& [name, config] : cases) {
    const auto chosen = choose(name, config);
    ASSERT_TRUE(chosen.ok()) << name << ": " << chosen.status().message();
    EXPECT_EQ(chosen.value(), WeightRounding::kNone) << name;
  }
}

TEST(QuantizationChoice, OthersAreRefusedWithTheRemedy) {
  EXPECT_NE(choose("awq", kGptqConfig).status().message().find("are quantised by gptq; remove it"),
            std::string::npos);
  EXPECT_NE(choose("fp8", kNvfp4Config).status().message().find("quantised by modelopt"),
            std::string::npos);
  EXPECT_NE(choose("awq", "").status().message().find("are not quantised; remove it, or use fp8"),
            std::string::npos);
  EXPECT_NE(choose("moe_wna16", kFp8Config).status().message().find("quantised by fp8; remove it"),
            std::string::npos);
  EXPECT_NE(choose("squeezellm", "").status().message().find("is not known; use fp8"),
            std::string::npos);
}

TEST(QuantizationChoice, TextPartsSayItThemselves) {
  const test::ScratchFolder folder;
  folder.write("config.json",
               std::string(R"({"text_config": {"quantization_config": )") + kGptqConfig + "}}");
  EXPECT_EQ(choose_quantization("gptq", folder.path()).value(), WeightRounding::kNone);
  EXPECT_FALSE(choose_quantization("fp8", folder.path()).ok());
}

}  // namespace
}  // namespace foretoken
