#include "group/child_ranks.h"

#include <gtest/gtest.h>

#include <csignal>

#include <unistd.h>

#include <cstdlib>

#include "group/end_state.h"
#include "group/launch.h"
#include "group/wire/socket.h"

namespace foretoken::group {
namespace {

// A child of these tests is this test program again, with the same arguments: it must not run the
// tests, so it ends or sleeps before main, as FORETOKEN_RANK says.
[[gnu::constructor]] void be_a_child() {
  const char* rank = std::getenv(kChildRankVariable);
  const char* master = std::getenv(kChildMasterVariable);
  if (rank == nullptr || master == nullptr) return;
  if (std::string(master) != "test:1") _exit(99);
  if (std::atoi(rank) == 7) _exit(7);
  if (std::atoi(rank) == 8) _exit(0);
  for (;;) pause();
}

bool alive(pid_t pid) { return kill(pid, 0) == 0; }

TEST(ChildRanks, ADeadChildIsNamedWithItsExitCode) {
  EndState told;
  auto children = ChildRanks::start({{8, "test", 1}, {7, "test", 1}},
                                    [&](const Status& why) { told.end(why); });
  ASSERT_TRUE(children.ok()) << children.status().message();
  ASSERT_EQ(wait_for(told.descriptor(), 1, -1, Clock::now() + std::chrono::seconds(120)),
            Waited::kReady);
  const std::string why = told.why().message();
  EXPECT_EQ(why.find("rank 7 (process "), 0u) << why;
  EXPECT_NE(why.find("ended with exit code 7"), std::string::npos) << why;
}

TEST(ChildRanks, AKilledChildIsNamedWithItsSignal) {
  EndState told;
  auto children = ChildRanks::start({{1, "test", 1}}, [&](const Status& why) { told.end(why); });
  ASSERT_TRUE(children.ok());
  kill(children.value()->pids().front(), SIGKILL);
  ASSERT_EQ(wait_for(told.descriptor(), 1, -1, Clock::now() + std::chrono::seconds(120)),
            Waited::kReady);
  EXPECT_NE(told.why().message().find("was ended by signal 9"), std::string::npos);
}

TEST(ChildRanks, AllChildrenEndWithTheirOwner) {
  auto children = ChildRanks::start({{1, "test", 1}, {2, "test", 1}},
                                    [](const Status& why) { ADD_FAILURE() << why.message(); });
  ASSERT_TRUE(children.ok());
  const std::vector<pid_t> pids = children.value()->pids();
  ASSERT_EQ(pids.size(), 2u);
  // A stopped one is killed in the end.
  kill(pids[1], SIGSTOP);
  EXPECT_TRUE(alive(pids[0]));
  children.value().reset();
  for (const pid_t pid : pids) EXPECT_FALSE(alive(pid));
}

}  // namespace
}  // namespace foretoken::group
