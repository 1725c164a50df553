#include "group/wire/mesh.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/log.h"
#include "group/wire/address.h"
#include "group/wire/message.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
using Lanes = std::vector<std::vector<Socket>>;

bool is_wanted(const MeshOptions& options, std::size_t lane, std::size_t peer) {
  return options.wanted.empty() || options.wanted[lane][peer];
}

Result<Socket> reach(const MeshOptions& options, int peer, int lane) {
  const RankAddress& mine = options.addresses[static_cast<std::size_t>(options.rank)];
  const RankAddress& theirs = options.addresses[static_cast<std::size_t>(peer)];
  const bool together = mine.host_identity == theirs.host_identity;
  Result<Socket> socket =
      together ? connect_local(theirs.local_name)
               : connect_tcp(theirs.host, theirs.port, options.stop_descriptor, options.deadline);
  if (!socket.ok()) return socket;
  if (!together) set_rank_options(socket.value());
  Message hello(MessageKind::kLane);
  hello.put(options.token);
  hello.put(static_cast<uint64_t>(options.rank));
  hello.put(static_cast<uint64_t>(lane));
  FT_RETURN_IF_ERROR(
      send_message(socket.value(), hello, options.stop_descriptor, options.deadline));
  return socket;
}

// Where an accepted connection belongs.
Status place(const MeshOptions& options, Socket socket, Lanes* lanes, int* missing) {
  FT_ASSIGN_OR_RETURN(const Message hello,
                      expect_message(socket, MessageKind::kLane, options.stop_descriptor,
                                     std::min(options.deadline, Clock::now() + 5s)));
  MessageReader reader(hello);
  FT_ASSIGN_OR_RETURN(const std::string token, reader.text());
  FT_ASSIGN_OR_RETURN(const uint64_t rank, reader.number());
  FT_ASSIGN_OR_RETURN(const uint64_t lane, reader.number());
  if (token != options.token) return invalid_argument("it belongs to another group");
  if (rank >= options.addresses.size() || lane >= lanes->size() ||
      rank <= static_cast<uint64_t>(options.rank) || !is_wanted(options, lane, rank) ||
      (*lanes)[lane][rank].open()) {
    return invalid_argument("it is no rank that was waited for");
  }
  (*lanes)[lane][rank] = std::move(socket);
  --*missing;
  return {};
}

Result<Socket> accept_either(const MeshOptions& options, const RankListeners& listeners) {
  for (;;) {
    pollfd polled[3] = {{listeners.tcp.descriptor(), POLLIN, 0},
                        {listeners.local.descriptor(), POLLIN, 0},
                        {options.stop_descriptor, POLLIN, 0}};
    poll(polled, 3, 100);
    if (polled[2].revents != 0) return aborted("stopped");
    if (polled[0].revents != 0) {
      FT_ASSIGN_OR_RETURN(Socket socket, accept_next(listeners.tcp, -1, options.deadline));
      set_rank_options(socket);
      return socket;
    }
    if (polled[1].revents != 0) return accept_next(listeners.local, -1, options.deadline);
    if (Clock::now() >= options.deadline) return aborted("no answer in time");
  }
}

std::string missing_ranks(const MeshOptions& options, const Lanes& lanes) {
  std::string names;
  for (std::size_t peer = static_cast<std::size_t>(options.rank) + 1;
       peer < options.addresses.size(); ++peer) {
    bool here = true;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      here &= lanes[lane][peer].open() || !is_wanted(options, lane, peer);
    }
    if (!here) names += fmt::format("{}{}", names.empty() ? "" : ", ", peer);
  }
  return names;
}

// Connections of ranks above this one.
int num_waited_for(const MeshOptions& options) {
  int count = 0;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(options.num_lanes); ++lane) {
    for (std::size_t peer = static_cast<std::size_t>(options.rank) + 1;
         peer < options.addresses.size(); ++peer) {
      if (is_wanted(options, lane, peer)) ++count;
    }
  }
  return count;
}

}  // namespace

Result<Lanes> connect_mesh(const MeshOptions& options, const RankListeners& listeners) {
  Lanes lanes(static_cast<std::size_t>(options.num_lanes));
  for (auto& lane : lanes) lane.resize(options.addresses.size());
  for (int peer = 0; peer < options.rank; ++peer) {
    for (int lane = 0; lane < options.num_lanes; ++lane) {
      if (!is_wanted(options, static_cast<std::size_t>(lane), static_cast<std::size_t>(peer))) {
        continue;
      }
      Result<Socket> socket = reach(options, peer, lane);
      if (!socket.ok()) {
        return internal_error(fmt::format("rank {} found no way to rank {}: {}", options.rank, peer,
                                          socket.status().message()));
      }
      lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(peer)] =
          std::move(socket).value();
    }
  }
  for (int missing = num_waited_for(options); missing > 0;) {
    Result<Socket> socket = accept_either(options, listeners);
    if (!socket.ok()) {
      return internal_error(fmt::format("rank {} waited for connections of ranks {}: {}",
                                        options.rank, missing_ranks(options, lanes),
                                        socket.status().message()));
    }
    const Status placed = place(options, std::move(socket).value(), &lanes, &missing);
    if (!placed.ok()) FT_LOG(warn, "a connection to a rank was closed: {}", placed.message());
  }
  return lanes;
}

}  // namespace foretoken::group
