#include "base/background.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
  EXPECT_EQ(inside, std::max(before, 15));
  EXPECT_EQ(own_nice(), before);
}

}  // namespace
}  // namespace foretoken
