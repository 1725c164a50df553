#include "gguf/plain_keys.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// Of a file with this key, for heads of 16.
Status check_with(const GgufArchitecture& architecture,
                  const std::function<void(test::GgufBytes&)>& add) {
  test::GgufBytes bytes(0, 1);
  add(bytes);
  const test::ScratchFolder folder;
  const auto file = GgufFile::open(bytes.align().write(folder.file("keys.gguf")));
  return file.ok() ? check_plain_keys(*file.value(), architecture, 16) : file.status();
}

Status check_with(const std::function<void(test::GgufBytes&)>& add) {
  return check_with(gguf_architectures()[0], add);
}

Status check_with(const std::string& key, float value) {
  return check_with([&](test::GgufBytes& bytes) { bytes.f32_value(key, value); });
}

TEST(PlainKeys, WhatChangesNothingIsAccepted) {
  EXPECT_TRUE(check_with("general.alpha", 3).ok());
  EXPECT_TRUE(check_with("llama.expert_count", 0).ok());
  EXPECT_TRUE(check_with("llama.logit_scale", 0).ok());
  EXPECT_TRUE(check_with("llama.logit_scale", 1).ok());
  EXPECT_TRUE(check_with("qwen2.expert_count", 8).ok());  // another architecture's
  EXPECT_TRUE(check_with([](auto& b) { b.bool_value("llama.attention.causal", false); }).ok());
  EXPECT_TRUE(check_with([](auto& b) { b.text_value("general.type", "model"); }).ok());
  EXPECT_TRUE(check_with([](auto& b) { b.u32_value("split.count", 1); }).ok());
}

TEST(PlainKeys, WhatIsNotComputedIsNamed) {
  for (const char* key :
       {"attention.value_length", "attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale",
        "embedding_scale", "residual_scale", "rope.scale_linear"}) {
    const Status status = check_with(std::string("llama.") + key, 8);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << key;
    EXPECT_NE(status.message().find(key), std::string::npos) << status.message();
  }
  const GgufArchitecture& qwen2 = gguf_architectures()[1];
  const auto experts = check_with(qwen2, [](auto& b) { b.u32_value("qwen2.expert_count", 8); });
  EXPECT_NE(experts.message().find("expert_count"), std::string::npos) << experts.message();
  const auto adapter = check_with([](auto& b) { b.text_value("general.type", "adapter"); });
  EXPECT_NE(adapter.message().find("'adapter'"), std::string::npos) << adapter.message();
  const auto part = check_with([](auto& b) { b.u32_value("split.count", 3); });
  EXPECT_NE(part.message().find("-00001-of-00003.gguf"), std::string::npos) << part.message();
}

TEST(PlainKeys, NumbersAreFinite) {
  const Status status = check_with("llama.logit_scale", std::numeric_limits<float>::quiet_NaN());
  EXPECT_NE(status.message().find("not finite"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
