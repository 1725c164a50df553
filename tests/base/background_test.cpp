#include "base/background.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace foretoken {
namespace {

int own_nice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(Background, ConcernsTheCallingThreadAlone) {
  const int before = own_nice();
  int inside = before;
  std::thread([&] {
    enter_background("ft-test");
    inside = own_nice();
  }).join();
  if (before < 15) {
    EXPECT_GT(inside, before);
  }
  EXPECT_GE(inside, before);
  EXPECT_EQ(own_nice(), before);
}

}  // namespace
}  // namespace foretoken
