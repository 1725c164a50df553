#include "model/peagle_config.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class PeagleConfigTest : public testing::Test {
 protected:
  PeagleConfigTest() { head_.layer.vocab_size = 100; }
  Status read(const nlohmann::json& json) {
    return read_peagle_fields(folder_.path(), {json, "config.json"}, &head_);
  }

  test::ScratchFolder folder_;
  DraftHeadConfig head_;
};

TEST_F(PeagleConfigTest, PublishedNamesOfTheMask) {
  for (const char* name : {"pard_token", "ptd_token_id", "mask_token_id"}) {
    head_.mask_id = 0;
    ASSERT_TRUE(read({{name, 42}}).ok());
    EXPECT_EQ(head_.mask_id, 42);
  }
}

TEST_F(PeagleConfigTest, TheFileBeside) {
  folder_.write("peagle_config.json", R"({"mask_token_id": 31, "norm_before_residual": true})");
  ASSERT_TRUE(read(nlohmann::json::object()).ok());
  EXPECT_EQ(head_.mask_id, 31);
  EXPECT_TRUE(head_.norm_before_residual);
  // config.json has the last word.
  head_.norm_before_residual = false;
  ASSERT_TRUE(read({{"mask_token_id", 7}, {"norm_before_residual", false}}).ok());
  EXPECT_EQ(head_.mask_id, 7);
  EXPECT_FALSE(head_.norm_before_residual);
}

TEST_F(PeagleConfigTest, WhatIsWrongIsNamed) {
  EXPECT_NE(read(nlohmann::json::object()).message().find("'mask_token_id' is missing"),
            std::string::npos);
  EXPECT_NE(read({{"ptd_token_id", 100}}).message().find("'ptd_token_id'"), std::string::npos);
  ASSERT_TRUE(read({{"dflash_config", {{"mask_token_id", 9}}}}).ok());
  EXPECT_EQ(head_.mask_id, 9);
  folder_.write("peagle_config.json", R"({"mask_token_id": -1})");
  const std::string message = read(nlohmann::json::object()).message();
  EXPECT_NE(message.find("peagle_config.json"), std::string::npos) << message;
}

}  // namespace
}  // namespace foretoken
