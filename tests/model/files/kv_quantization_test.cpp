#include "model/files/kv_quantization.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

KvQuantization asked_by(const std::string& config, const std::string& of_modelopt = "") {
  const test::ScratchFolder folder;
  folder.write("config.json", config);
  if (!of_modelopt.empty()) folder.write("hf_quant_config.json", of_modelopt);
  const auto found = read_kv_quantization(folder.path());
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? found.value() : KvQuantization();
}

std::string with_fields(const std::string& fields) {
  return R"({"quantization_config": {)" + fields + "}}";
}

TEST(KvQuantization, MostAskForNothing) {
  for (const char* config :
       {"{}", R"({"quantization_config": null})",
        R"({"quantization_config": {"quant_method": "fp8", "kv_cache_scheme": "static"}})",
        R"({"quantization_config": {"quant_method": "compressed-tensors",
            "kv_cache_scheme": null}})"}) {
    EXPECT_EQ(asked_by(config).field, "") << config;
  }
}

TEST(KvQuantization, SchemesOfCompressedTensors) {
  const std::string fp8 = R"("quant_method": "compressed-tensors", "kv_cache_scheme":
      {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": false})";
  const KvQuantization found = asked_by(with_fields(fp8));
  EXPECT_EQ(found.field, "kv_cache_scheme");
  EXPECT_TRUE(found.is_fp8);
  const KvQuantization int8 =
      asked_by(with_fields(R"("quant_method": "compressed-tensors", "kv_cache_scheme":
      {"num_bits": 8, "type": "int"})"));
  EXPECT_EQ(int8.field, "kv_cache_scheme");
  EXPECT_FALSE(int8.is_fp8);
  EXPECT_NE(int8.value.find("\"int\""), std::string::npos);
}

TEST(KvQuantization, NamesOfModelOpt) {
  EXPECT_TRUE(
      asked_by(with_fields(R"("quant_method": "modelopt", "kv_cache_quant_algo": "FP8")")).is_fp8);
  EXPECT_TRUE(asked_by(with_fields(R"("quant_method": "modelopt_fp4",
      "quantization": {"kv_cache_quant_algo": "FP8"})"))
                  .is_fp8);
  const std::string file = R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "X"}})";
  std::string fp8 = file;
  fp8.replace(fp8.find("\"X\""), 3, "\"FP8\"");
  EXPECT_TRUE(asked_by("{}", fp8).is_fp8);
  EXPECT_FALSE(asked_by("{}", file).is_fp8);
  EXPECT_EQ(asked_by("{}", file).value, "\"X\"");
}

TEST(KvQuantization, BrokenFilesAreErrors) {
  const test::ScratchFolder folder;
  folder.write("config.json", "[1]");
  EXPECT_FALSE(read_kv_quantization(folder.path()).ok());
}

}  // namespace
}  // namespace foretoken
