#include "attention/backend.h"

#include <gtest/gtest.h>

#include <string>

#include "support/claimed_device.h"

namespace foretoken {
namespace {

const test::ClaimedDevice kCpu(DeviceType::kCpu, false);
const test::ClaimedDevice kGpu(DeviceType::kCuda, false);
const test::ClaimedDevice kHopper(DeviceType::kCuda, true);

void expect_unsupported(const char* name, const Device& device,
                        std::initializer_list<const char*> parts) {
  const auto backend = find_attention_backend(name, device);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.status().code(), StatusCode::kUnsupported);
  for (const char* said : parts) {
    EXPECT_NE(backend.status().message().find(said), std::string::npos)
        << backend.status().message();
  }
}

TEST(AttentionBackend, AutoFindsAnInvariantOneForEveryDevice) {
  for (const Device* device : {&kCpu, &kGpu, &kHopper}) {
    const auto backend = find_attention_backend("auto", *device);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    EXPECT_TRUE(backend.value()->runs_on(*device));
    EXPECT_TRUE(backend.value()->traits().batch_invariant);
  }
}

TEST(AttentionBackend, NamesAndAliasesInAnyCase) {
  const auto portable = find_attention_backend("portable", kCpu);
  ASSERT_TRUE(portable.ok());
  for (const char* name : {"TRITON_ATTN", "triton_attn", "Portable"}) {
    const auto backend = find_attention_backend(name, kCpu);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    EXPECT_EQ(backend.value(), portable.value());
    EXPECT_TRUE(is_attention_backend(*backend.value(), name));
  }
  EXPECT_FALSE(is_attention_backend(*portable.value(), "auto"));
}

TEST(AttentionBackend, UnknownNameListsWhatExists) {
  expect_unsupported("FLASH_ATTN", kCpu,
                     {"'FLASH_ATTN'", "cpu", "auto", "portable", "TRITON_ATTN"});
  expect_unsupported("FLASH_ATTN", kHopper, {"'FLASH_ATTN'", "cuda", "portable", "flashinfer"});
}

TEST(AttentionBackend, SaysWhatADeviceLacks) {
  EXPECT_TRUE(find_attention_backend("FLASHINFER", kHopper).ok());
  expect_unsupported("flashinfer", kGpu, {"'flashinfer' needs", "9.0", "./quickstart --cuda"});
  expect_unsupported("flashinfer", kCpu, {"does not exist on cpu", "portable"});
}

TEST(AttentionBackend, EveryBackendDescribesItself) {
  ASSERT_FALSE(attention_backends().empty());
  for (const AttentionBackend* backend : attention_backends()) {
    EXPECT_FALSE(std::string(backend->traits().name).empty());
    EXPECT_FALSE(std::string(backend->traits().description).empty());
    EXPECT_FALSE(backend->traits().places.empty());
    for (const AttentionPlace& place : backend->traits().places) {
      EXPECT_TRUE(backend->traits().runs_on(place.device));
      EXPECT_TRUE(backend->traits().reads(place.device, KvFormat::kPlain)) << "what `auto` gives";
    }
  }
}

TEST(AttentionBackend, AKvFormatIsBuiltWhereABackendReadsIt) {
  EXPECT_TRUE(is_kv_format_built(DeviceType::kCpu, KvFormat::kInt8));
  EXPECT_FALSE(is_kv_format_built(DeviceType::kCuda, KvFormat::kInt8));
  EXPECT_TRUE(is_kv_format_built(DeviceType::kCuda, KvFormat::kPlain));
  EXPECT_TRUE(is_kv_format_built(DeviceType::kCpu, KvFormat::kFp8));
  EXPECT_TRUE(is_kv_format_built(DeviceType::kCuda, KvFormat::kFp8));
}

}  // namespace
}  // namespace foretoken
