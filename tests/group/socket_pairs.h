#pragma once
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "group/socket_link.h"

namespace foretoken::group {

inline std::pair<Socket, Socket> socket_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// Connections between all ranks, [rank][peer].
inline std::vector<std::vector<Socket>> connected(int size) {
  const auto count = static_cast<std::size_t>(size);
  std::vector<std::vector<Socket>> sockets(count);
  for (auto& row : sockets) row.resize(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      std::tie(sockets[a][b], sockets[b][a]) = socket_pair();
    }
  }
  return sockets;
}

inline std::shared_ptr<LinkShared> share(int rank, int size) {
  auto shared = std::make_shared<LinkShared>();
  shared->layout = {.tp = size};
  shared->rank = rank;
  return shared;
}

}  // namespace foretoken::group
