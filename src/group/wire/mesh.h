#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "group/wire/socket.h"

namespace foretoken::group {

// Where a rank waits for the connections of the others.
struct RankAddress {
  std::string host_identity;  // address.h; ranks with the same one meet at `local_name`
  std::string local_name;
  std::string host;  // the others go to host:port
  int port = 0;
};

// A rank's listening sockets.
struct RankListeners {
  Socket tcp;
  Socket local;
};

struct MeshOptions {
  int rank = 0;
  int num_lanes = 1;
  std::vector<RankAddress> addresses = {};  // by rank
  // By lane and rank, whether this one is connected with it; empty: with all. Alike on both sides.
  std::vector<std::vector<bool>> wanted = {};
  std::string token = {};  // of the group; a connection that lacks it is closed
  int stop_descriptor = -1;
  Clock::time_point deadline = Clock::time_point::max();
};

// A connection to every other rank that is wanted, for every lane: [lane][rank], the places of this
// one and of those that are not wanted closed. A rank goes to all below it and waits for all above
// it. Called by all ranks at once; the error names the rank that did not come or could not be
// reached.
Result<std::vector<std::vector<Socket>>> connect_mesh(const MeshOptions& options,
                                                      const RankListeners& listeners);

}  // namespace foretoken::group
