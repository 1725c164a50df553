#include "base/files/local_path.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace foretoken {
namespace {

class LocalPath : public testing::Test {
 protected:
  void SetUp() override {
    const char* home = std::getenv("HOME");
    before_ = home == nullptr ? "" : home;
    setenv("HOME", "/home/someone", 1);
  }
  void TearDown() override { setenv("HOME", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_F(LocalPath, WhatNoShellHasWrittenOut) {
  EXPECT_EQ(local_path("~/models/a b"), "/home/someone/models/a b");
  EXPECT_EQ(local_path("~"), "/home/someone");
  EXPECT_EQ(local_path("file:///mnt/models"), "/mnt/models");
}

TEST_F(LocalPath, AllElseStays) {
  for (const char* path : {"", "org/name", "/a/~/b", "~other/x", "a~", "file://host/x", "file:x",
                           "https://huggingface.co/org/name", "hf.co/org/name:Q4_K_M"}) {
    EXPECT_EQ(local_path(path), path);
  }
  unsetenv("HOME");
  EXPECT_EQ(local_path("~/x"), "~/x");
}

}  // namespace
}  // namespace foretoken
