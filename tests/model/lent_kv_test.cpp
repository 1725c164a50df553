#include <gtest/gtest.h>

#include "model/forward_harness.h"
#include "model/golden.h"

namespace foretoken::test {
namespace {

std::unique_ptr<Model> model_of(const std::string& name) {
  return load_test_model(golden_folder() + "architectures/" + name, {}, 8);
}

class LentKvTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
};

// Of six layers the last two read what the third and the fourth keep.
TEST_F(LentKvTest, LayersThatReadOthersLendTheirs) {
  const auto model = model_of("gemma4-deep");
  const std::optional<LentKv> windowed = model->lent_kv(true), full = model->lent_kv(false);
  ASSERT_TRUE(windowed && full);
  EXPECT_TRUE(windowed->windowed_group);
  EXPECT_EQ(windowed->group_index, 1);
  EXPECT_EQ(windowed->window, 24);
  EXPECT_FALSE(full->windowed_group);
  EXPECT_EQ(full->group_index, 1);
  EXPECT_EQ(full->window, 0);
  EXPECT_EQ(full->scales.keys, nullptr);
}

TEST_F(LentKvTest, WhatNoLayerKeepsIsNotLent) {
  const auto llama = model_of("llama");
  EXPECT_TRUE(llama->lent_kv(false));
  EXPECT_FALSE(llama->lent_kv(true));
  EXPECT_FALSE(model_of("deepseek_v3")->lent_kv(false)) << "latents";
}

}  // namespace
}  // namespace foretoken::test
