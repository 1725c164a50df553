#include "base/process_limits.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ProcessLimits, WhatIsTooLowIsNamed) {
  EXPECT_EQ(limit_fault({}), "");
  EXPECT_EQ(limit_fault({1 << 20, 1 << 30}), "");
  EXPECT_EQ(limit_fault({64 << 10, 0}),
            "the stack of a thread may have only 64 KiB (ulimit -s 64); raise "
            "it to 1024 at least");
  EXPECT_EQ(limit_fault({0, 200'000 << 10}),
            "the process's memory may have only 200000 KiB (ulimit -v 200000); "
            "raise it to 524288 "
            "at least");
}

TEST(ProcessLimits, TestsRunWithEnough) { EXPECT_EQ(limit_fault(process_limits()), ""); }

}  // namespace
}  // namespace foretoken
