#include "compat/kv_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(KvFormat, NamesThatMeanSomething) {
  for (const char* name : {"auto", "bfloat16"}) {
    for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
      EXPECT_EQ(choose_kv_format(name, device, DType::kBF16).value(), KvFormat::kPlain) << name;
    }
  }
  EXPECT_EQ(choose_kv_format("float32", DeviceType::kCpu, DType::kF32).value(), KvFormat::kPlain);
  for (const char* name : {"int8", "int8_per_token_head"}) {
    EXPECT_EQ(choose_kv_format(name, DeviceType::kCpu, DType::kF32).value(), KvFormat::kInt8);
  }
  for (const char* name : {"fp8", "fp8_e4m3"}) {
    for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
      for (const bool compressed : {false, true}) {
        EXPECT_EQ(choose_kv_format(name, device, DType::kBF16, compressed).value(), KvFormat::kFp8);
      }
    }
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
  EXPECT_EQ(message("int8", DeviceType::kCuda),
            "--kv-cache-dtype int8 is built for the CPU only; use auto or fp8");
  EXPECT_EQ(message("fp8_e5m2", DeviceType::kCpu),
            "--kv-cache-dtype fp8_e5m2 is not built; use auto, int8 or fp8");
  EXPECT_EQ(message("fp8_e5m2", DeviceType::kCuda),
            "--kv-cache-dtype fp8_e5m2 is not built; use auto or fp8");
  EXPECT_EQ(message("bfloat16", DeviceType::kCpu),
            "--kv-cache-dtype bfloat16 is not the model's type, float32; use auto, int8 or fp8, or "
            "give --dtype bfloat16");
  EXPECT_EQ(choose_kv_format("int8", DeviceType::kCpu, DType::kF32, true).status().message(),
            "--kv-cache-dtype int8 is not built for compressed entries of positions; use auto or "
            "fp8");
  EXPECT_TRUE(choose_kv_format("auto", DeviceType::kCpu, DType::kF32, true).ok());
  EXPECT_EQ(message("int9", DeviceType::kCpu),
            "--kv-cache-dtype 'int9' is unknown; use auto, int8 or fp8");
}

}  // namespace
}  // namespace foretoken
