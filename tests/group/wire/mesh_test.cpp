#include "group/wire/mesh.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "group/rendezvous.h"
#include "group/wire/address.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

struct Node {
  RankListeners listeners;
  RankAddress address;
};

// Ranks of one host, or of as many hosts as ranks.
std::vector<Node> make_nodes(int size, bool one_host) {
  std::vector<Node> nodes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].address = {.host_identity = one_host ? "here" : "host " + std::to_string(i),
                        .local_name = random_name(),
                        .host = "127.0.0.1"};
    nodes[i].listeners.tcp = listen_tcp("127.0.0.1", 0).value();
    nodes[i].listeners.local = listen_local(nodes[i].address.local_name).value();
    nodes[i].address.port = port_of(nodes[i].listeners.tcp);
  }
  return nodes;
}

void expect_connected(bool one_host) {
  constexpr int kSize = 3;
  const std::vector<Node> nodes = make_nodes(kSize, one_host);
  MeshOptions options{.num_lanes = 2, .token = "token", .deadline = Clock::now() + 120s};
  for (const Node& node : nodes) options.addresses.push_back(node.address);
  std::vector<std::vector<std::vector<Socket>>> found(kSize);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank, mine = options]() mutable {
      mine.rank = rank;
      auto mesh = connect_mesh(mine, nodes[static_cast<std::size_t>(rank)].listeners);
      ASSERT_TRUE(mesh.ok()) << mesh.status().message();
      found[static_cast<std::size_t>(rank)] = std::move(mesh).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  // What rank 0 sends to rank 2 on lane 1 comes there and nowhere else.
  const std::array<std::byte, 1> sent{std::byte{42}};
  std::array<std::byte, 1> got{};
  ASSERT_TRUE(send_all(found[0][1][2], sent, -1, Clock::now() + 120s).ok());
  ASSERT_TRUE(receive_all(found[2][1][0], got, -1, Clock::now() + 120s).ok());
  EXPECT_EQ(got, sent);
  EXPECT_FALSE(found[1][0][1].open());
}

TEST(Mesh, ConnectsAllRanksOfOneHost) { expect_connected(true); }
TEST(Mesh, ConnectsAllRanksOverTcp) { expect_connected(false); }

TEST(Mesh, LeavesOutWhoIsNotWanted) {
  const std::vector<Node> nodes = make_nodes(3, true);
  MeshOptions options{.num_lanes = 2, .token = "token", .deadline = Clock::now() + 120s};
  for (const Node& node : nodes) options.addresses.push_back(node.address);
  std::vector<std::vector<Socket>> lane(3), other(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank, mine = options]() mutable {
      mine.rank = rank;
      mine.wanted = {{rank != 1, rank == 1, rank != 1}, {false, rank == 2, rank == 1}};
      auto mesh = connect_mesh(mine, nodes[static_cast<std::size_t>(rank)].listeners);
      ASSERT_TRUE(mesh.ok()) << mesh.status().message();
      lane[static_cast<std::size_t>(rank)] = std::move(mesh.value()[0]);
      other[static_cast<std::size_t>(rank)] = std::move(mesh.value()[1]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(lane[0][2].open() && lane[2][0].open());
  EXPECT_FALSE(lane[0][1].open() || lane[1][0].open() || lane[1][2].open());
  EXPECT_TRUE(other[1][2].open() && other[2][1].open());
  EXPECT_FALSE(other[0][1].open() || other[0][2].open());
}

TEST(Mesh, NamesTheRanksThatDoNotCome) {
  const std::vector<Node> nodes = make_nodes(3, true);
  MeshOptions options{.rank = 0, .token = "token", .deadline = Clock::now()};
  for (const Node& node : nodes) options.addresses.push_back(node.address);
  const auto mesh = connect_mesh(options, nodes[0].listeners);
  ASSERT_FALSE(mesh.ok());
  EXPECT_NE(mesh.status().message().find("ranks 1, 2"), std::string::npos)
      << mesh.status().message();
}

}  // namespace
}  // namespace foretoken::group
