#include "base/thread_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "support/no_threads.h"

namespace foretoken {
namespace {

TEST(ThreadLimit, IsToldWithWhatToRaise) {
  const test::NoThreads none;
  const Status status = start_threads([]() -> Status {
    std::thread([] {}).join();
    return {};
  });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("ulimit -u"), std::string::npos);
}

TEST(ThreadLimit, OtherErrorsPass) {
  const auto fail = []() -> Status {
    throw std::filesystem::filesystem_error("planned", std::make_error_code(std::errc::io_error));
  };
  EXPECT_THROW((void)start_threads(fail), std::filesystem::filesystem_error);
  EXPECT_TRUE(start_threads([] { return Status(); }).ok());
}

}  // namespace
}  // namespace foretoken
