#include "base/log.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Log, WritesToStderrOnlyAndKeepsItsLevel) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  init_logging("info");
  FT_LOG(info, "loaded {} tensors", 12);
  FT_LOG(debug, "not shown");
  spdlog::default_logger()->flush();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(text.find("loaded 12 tensors"), std::string::npos) << text;
  EXPECT_EQ(text.find("not shown"), std::string::npos) << text;
}

TEST(Log, TakesTheLevelByName) {
  init_logging("debug");
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::debug);
  init_logging("warning");
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::warn);
  init_logging("error");
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::err);
}

}  // namespace
}  // namespace foretoken
