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
  const struct {
    const char* name;
    const char* alias;
  } rows[] = {{"portable", "TRITON_ATTN"},     {"Flash", "flash_attn"},
              {"FLASHINFER", "flashinfer"},    {"flex", "Flex_Attention"},
              {"flash_mla", "FLASH_ATTN_MLA"}, {"portable_mla", "TRITON_MLA"}};
  for (const auto& row : rows) {
    const auto backend = find_attention_backend(row.name, kHopper);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    EXPECT_EQ(find_attention_backend(row.alias, kHopper).value(), backend.value());
    EXPECT_EQ(named_attention(row.name), backend.value());
    EXPECT_EQ(named_attention(row.alias), backend.value());
    EXPECT_TRUE(is_attention_backend(*backend.value(), row.alias));
    EXPECT_FALSE(is_attention_backend(*backend.value(), "auto"));
  }
}

TEST(AttentionBackend, NoOtherNameIsOfOne) {
  for (const char* name : {"auto", "", "XFORMERS", "flash_", "flex(kv)"}) {
    EXPECT_EQ(named_attention(name), nullptr) << name;
  }
}

TEST(AttentionBackend, UnknownNameListsWhatExists) {
  expect_unsupported("XFORMERS", kCpu, {"'XFORMERS'", "cpu", "auto", "portable", "TRITON_ATTN"});
  expect_unsupported("XFORMERS", kHopper, {"'XFORMERS'", "cuda", "flash", "portable_mla"});
}

TEST(AttentionBackend, SaysWhatADeviceLacksAndWhatServes) {
  expect_unsupported("FLASH_ATTN", kCpu, {"'flash' does not exist on cpu", "portable"});
  expect_unsupported("FLASH_ATTN", kGpu, {"'flash' needs", "9.0", "portable (also TRITON_ATTN)"});
  expect_unsupported("flashinfer", kGpu, {"'flashinfer' needs", "9.0", "./quickstart --cuda"});
  expect_unsupported("flashinfer", kCpu, {"does not exist on cpu", "portable"});
  expect_unsupported("FLASHMLA", kHopper,
                     {"'flashmla' needs", "FORETOKEN_FLASHMLA_DIR", "one of: flash_mla"});
  expect_unsupported("CUTLASS_MLA", kHopper, {"'cutlass_mla' needs", "B200", "one of: flash_mla"});
  expect_unsupported("FLASHINFER_MLA", kGpu,
                     {"'flashinfer_mla' needs", "9.0", "one of: portable_mla"});
  expect_unsupported("FLASHINFER_MLA", kCpu, {"does not exist on cpu", "portable_mla"});
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

// What is chosen without a name reads every --kv-cache-dtype.
TEST(AttentionBackend, ThoseOfEqualBitsReadAllKvFormats) {
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    for (const AttentionPlace& place : traits.places) {
      for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
        EXPECT_EQ(traits.reads(place.device, format), traits.batch_invariant) << traits.name;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
