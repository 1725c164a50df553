#include "attention/backend.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

TEST(AttentionBackend, AutoFindsOneForEveryDevice) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    const auto backend = find_attention_backend("auto", device);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    const AttentionTraits& traits = backend.value()->traits();
    EXPECT_TRUE(device == DeviceType::kCpu ? traits.cpu : traits.cuda);
  }
}

TEST(AttentionBackend, NamesAndAliasesInAnyCase) {
  const auto portable = find_attention_backend("portable", DeviceType::kCpu);
  ASSERT_TRUE(portable.ok());
  for (const char* name : {"TRITON_ATTN", "triton_attn", "Portable"}) {
    const auto backend = find_attention_backend(name, DeviceType::kCpu);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    EXPECT_EQ(backend.value(), portable.value());
  }
}

TEST(AttentionBackend, UnknownNameListsWhatExists) {
  const auto backend = find_attention_backend("FLASH_ATTN", DeviceType::kCpu);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.status().code(), StatusCode::kUnsupported);
  for (const char* said : {"'FLASH_ATTN'", "cpu", "auto", "portable", "TRITON_ATTN"}) {
    EXPECT_NE(backend.status().message().find(said), std::string::npos)
        << backend.status().message();
  }
}

TEST(AttentionBackend, EveryBackendDescribesItself) {
  ASSERT_FALSE(attention_backends().empty());
  for (const AttentionBackend* backend : attention_backends()) {
    EXPECT_FALSE(std::string(backend->traits().name).empty());
    EXPECT_FALSE(std::string(backend->traits().description).empty());
    EXPECT_TRUE(backend->traits().cpu || backend->traits().cuda);
  }
}

}  // namespace
}  // namespace foretoken
