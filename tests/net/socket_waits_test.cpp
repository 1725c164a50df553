#include "net/socket_waits.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace foretoken::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class SocketWaitsTest : public testing::Test {
 protected:
  SocketWaitsTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~SocketWaitsTest() override {
    for (const int end : ends_) close(end);
  }

  std::array<int, 2> ends_{};
  SocketWaits waits_;
};

TEST_F(SocketWaitsTest, TimesComeAndMayHavePassed) {
  const auto begin = steady_clock::now();
  while (steady_clock::now() < begin + milliseconds(20)) {
    EXPECT_TRUE(waits_.wait(begin + milliseconds(20)).empty());
  }
  EXPECT_TRUE(waits_.wait(begin).empty());
  EXPECT_TRUE(waits_.wait(begin).empty()) << "the same time again";
  EXPECT_TRUE(waits_.wait(steady_clock::time_point()).empty());
}

TEST_F(SocketWaitsTest, SocketsAreReadyForWhatIsAsked) {
  waits_.watch(ends_[0], true, false);
  EXPECT_TRUE(waits_.wait(steady_clock::now()).empty());
  ASSERT_EQ(write(ends_[1], "x", 1), 1);
  auto ready = waits_.wait({});
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].socket, ends_[0]);
  EXPECT_TRUE(ready[0].in);
  EXPECT_FALSE(ready[0].out);
  waits_.watch(ends_[0], false, true);
  ready = waits_.wait({});
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_FALSE(ready[0].in);
  EXPECT_TRUE(ready[0].out);
  waits_.forget(ends_[0]);
  waits_.forget(ends_[0]);
  EXPECT_TRUE(waits_.wait(steady_clock::now() + milliseconds(1)).empty());
}

TEST_F(SocketWaitsTest, AnEndThatIsGoneIsTold) {
  waits_.watch(ends_[0], true, false);
  shutdown(ends_[1], SHUT_RDWR);
  const auto ready = waits_.wait({});
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_TRUE(ready[0].failed);
}

}  // namespace
}  // namespace foretoken::net
