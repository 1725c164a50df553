#include "http/message/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

namespace foretoken::http {
namespace {

TEST(HttpStream, ShowsWhatTheOtherSideTook) {
  boost::asio::io_context context;
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Stream::Socket socket(context, Stream::Socket::protocol_type(AF_UNIX, 0), fds[0]);
  EXPECT_EQ(Stream::peer_name(socket), "unix");
  Stream stream(std::move(socket), nullptr);
  EXPECT_FALSE(stream.is_tls());
  const std::string bytes(1000, 'x');
  size_t num_written = 0;
  stream.write_some({boost::asio::buffer(bytes), boost::asio::buffer(bytes)},
                    [&](const auto& ec, size_t count) {
                      EXPECT_FALSE(ec);
                      num_written = count;
                    });
  context.run();
  EXPECT_EQ(num_written, 2000U);
  EXPECT_GT(stream.num_unacknowledged(), 0U);
  char taken[2000];
  EXPECT_EQ(::read(fds[1], taken, sizeof taken), 2000);
  EXPECT_EQ(stream.num_unacknowledged(), 0U);
  EXPECT_FALSE(stream.peer_closed());
  ::close(fds[1]);
  EXPECT_TRUE(stream.peer_closed());
  stream.close();
  EXPECT_TRUE(stream.peer_closed());
}

}  // namespace
}  // namespace foretoken::http
