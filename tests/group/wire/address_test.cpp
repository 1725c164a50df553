#include "group/wire/address.h"

#include <gtest/gtest.h>

#include <array>

#include "group/end_state.h"
#include "group/rendezvous.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

TEST(Address, TcpConnectsAndKnowsItsEnds) {
  Result<Socket> listener = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const int port = port_of(listener.value());
  ASSERT_GT(port, 0);
  Result<Socket> there = connect_tcp("127.0.0.1", port, -1, Clock::now() + 120s);
  ASSERT_TRUE(there.ok()) << there.status().message();
  Result<Socket> here = accept_next(listener.value(), -1, Clock::now() + 120s);
  ASSERT_TRUE(here.ok());
  set_rank_options(here.value());
  EXPECT_EQ(own_address(there.value()), "127.0.0.1");
  const std::array<std::byte, 3> data{};
  std::array<std::byte, 3> got{};
  EXPECT_TRUE(send_all(here.value(), data, -1, Clock::now() + 120s).ok());
  EXPECT_TRUE(receive_all(there.value(), got, -1, Clock::now() + 120s).ok());
}

TEST(Address, ErrorsNameTheAddress) {
  Result<Socket> listener = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  const int port = port_of(listener.value());
  const std::string name = "127.0.0.1:" + std::to_string(port);
  const Result<Socket> twice = listen_tcp("127.0.0.1", port);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.status().message().find(name), std::string::npos) << twice.status().message();
  EXPECT_NE(twice.status().message().find("--master-port"), std::string::npos);
  listener.value().close();
  const Result<Socket> nobody = connect_tcp("127.0.0.1", port, -1, Clock::now());
  ASSERT_FALSE(nobody.ok());
  EXPECT_NE(nobody.status().message().find(name), std::string::npos) << nobody.status().message();
  EXPECT_FALSE(connect_tcp("no.such.host.invalid", port, -1, Clock::now()).ok());
}

TEST(Address, AStopEndsConnectingAndAccepting) {
  EndState state;
  state.end(aborted("enough"));
  Result<Socket> listener = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(accept_next(listener.value(), state.descriptor(), Clock::now() + 1h).status().message(),
            "stopped");
  const int port = port_of(listener.value());
  listener.value().close();
  EXPECT_EQ(
      connect_tcp("127.0.0.1", port, state.descriptor(), Clock::now() + 1h).status().message(),
      "stopped");
}

TEST(Address, LocalNamesMeet) {
  const std::string name = random_name();
  EXPECT_FALSE(connect_local(name).ok());
  Result<Socket> listener = listen_local(name);
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(listen_local(name).ok());
  ASSERT_TRUE(connect_local(name).ok());
  ASSERT_TRUE(accept_next(listener.value(), -1, Clock::now() + 120s).ok());
}

TEST(Address, AHostHasOneIdentity) {
  EXPECT_FALSE(host_identity().empty());
  EXPECT_EQ(host_identity(), host_identity());
}

}  // namespace
}  // namespace foretoken::group
