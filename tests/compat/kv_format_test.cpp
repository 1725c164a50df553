#include "compat/kv_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(KvFormat, NamesThatMeanSomething) {
  for (const char* name : {"auto", "bfloat16", "bf16"}) {
    for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
      EXPECT_EQ(choose_kv_format(name, device, DType::kBF16).value(), KvFormat::kPlain) << name;
    }
  }
  EXPECT_EQ(choose_kv_format("float32", DeviceType::kCpu, DType::kF32).value(), KvFormat::kPlain);
  for (const char* name : {"int8", "int8_per_token_head"}) {
    for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
      EXPECT_EQ(choose_kv_format(name, device, DType::kF32).value(), KvFormat::kInt8) << name;
    }
  }
  for (const char* name : {"fp8", "fp8_e4m3", "fp8_inc", "fp8_ds_mla", "fp8_e5m2"}) {
    for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
      EXPECT_EQ(choose_kv_format(name, device, DType::kBF16).value(), KvFormat::kFp8) << name;
    }
    const bool is_other = std::string(name) == "fp8_e5m2";
    EXPECT_EQ(kv_format_note(name).find("E4M3 codes") != std::string::npos, is_other) << name;
  }
}

TEST(KvFormat, HasANameOfItsOwn) {
  EXPECT_STREQ(kv_format_name(KvFormat::kPlain), "auto");
  for (const KvFormat format : {KvFormat::kPlain, KvFormat::kInt8, KvFormat::kFp8}) {
    EXPECT_EQ(find_kv_format(kv_format_name(format), DType::kF32), format);
  }
}

TEST(KvFormat, OthersSayWhatToUse) {
  const auto message = [](const char* name, DeviceType device) {
    const Result<KvFormat> format = choose_kv_format(name, device, DType::kF32);
    return format.ok() ? std::string() : format.status().message();
  };
  for (const char* name : {"nvfp4", "int4", "fp8_per_token_head", "turboquant_k8v4", "float16"}) {
    EXPECT_EQ(message(name, DeviceType::kCpu),
              "--kv-cache-dtype " + std::string(name) + " is not built; use auto, int8 or fp8");
  }
  EXPECT_EQ(message("nvfp4", DeviceType::kCuda),
            "--kv-cache-dtype nvfp4 is not built; use auto, int8 or fp8");
  EXPECT_EQ(message("bfloat16", DeviceType::kCpu),
            "--kv-cache-dtype bfloat16 is not the model's type, float32; use auto, int8 or fp8, or "
            "give --dtype bfloat16");
  EXPECT_EQ(message("int9", DeviceType::kCpu),
            "--kv-cache-dtype 'int9' is unknown; use auto, int8 or fp8");
}

}  // namespace
}  // namespace foretoken
