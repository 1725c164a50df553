#include "group/wire/socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <thread>

#include "group/end_state.h"
#include "group/socket_pairs.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

TEST(Socket, MovesMoreThanABufferHolds) {
  auto [a, b] = socket_pair();
  std::vector<std::byte> sent(3 << 20, std::byte{7});
  std::vector<std::byte> got(sent.size());
  std::thread other(
      [&, &end = b] { EXPECT_TRUE(receive_all(end, got, -1, Clock::time_point::max()).ok()); });
  EXPECT_TRUE(send_all(a, sent, -1, Clock::time_point::max()).ok());
  other.join();
  EXPECT_EQ(got, sent);
}

TEST(Socket, WaitingEndsByStopDeadlineAndClose) {
  auto [a, b] = socket_pair();
  std::array<std::byte, 4> data{};
  EXPECT_EQ(receive_all(a, data, -1, Clock::now()).message(), "no answer in time");
  EndState state;
  state.end(aborted("enough"));
  EXPECT_EQ(receive_all(a, data, state.descriptor(), Clock::now() + 1h).message(), "stopped");
  b.close();
  EXPECT_EQ(receive_all(a, data, -1, Clock::now() + 1h).message(), "the connection was closed");
  EXPECT_EQ(send_all(a, data, -1, Clock::now() + 1h).message(), "the connection was closed");
}

TEST(Socket, MovesItsDescriptor) {
  auto [a, b] = socket_pair();
  const int descriptor = a.descriptor();
  Socket c = std::move(a);
  EXPECT_EQ(c.descriptor(), descriptor);
  c = std::move(b);
  EXPECT_TRUE(c.open());
  c.close();
  EXPECT_FALSE(c.open());
}

}  // namespace
}  // namespace foretoken::group
