#include "engine/load_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LoadFormat, NamesThatMeanSomething) {
  EXPECT_EQ(choose_load_format("auto").value().format, LoadFormat::kAuto);
  EXPECT_EQ(choose_load_format("safetensors").value().format, LoadFormat::kAuto);
  const LoadChoice plain = choose_load_format("dummy").value();
  EXPECT_EQ(plain.format, LoadFormat::kDummy);
  EXPECT_EQ(plain.recipe, nullptr);
  const LoadChoice quantised = choose_load_format("dummy-q4_k_m").value();
  EXPECT_EQ(quantised.format, LoadFormat::kDummy);
  ASSERT_NE(quantised.recipe, nullptr);
  EXPECT_EQ(quantised.recipe->name, "q4_k_m");
  EXPECT_TRUE(is_dummy("dummy"));
  EXPECT_TRUE(is_dummy("dummy-q8_0"));
  EXPECT_FALSE(is_dummy("auto"));
}

TEST(LoadFormat, OthersSayWhatThereIs) {
  for (const char* name : {"tape", "dummy-", "dummy-q5_k", "dummy-bf16", "dummyq8_0"}) {
    const Result<LoadChoice> choice = choose_load_format(name);
    ASSERT_FALSE(choice.ok()) << name;
    EXPECT_EQ(choice.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(choice.status().message().find("dummy-q8_0, dummy-q4_0"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
