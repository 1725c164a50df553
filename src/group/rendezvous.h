#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "group/agreement.h"
#include "group/rank_place.h"
#include "group/wire/mesh.h"

namespace foretoken::group {

// How a rank finds the others.
struct RendezvousOptions {
  RankLayout layout;
  int rank = 0;             // bare_front: it is none
  std::string master_host;  // of the process that gathers the ranks
  int master_port = 0;
  AgreedParts parts;  // what all must have alike; the first is the program's version
  // All ranks of this process, each of which comes as a thread of it; another process that says it
  // has one of them doubles that.
  std::vector<int> own_ranks;
  int pid = 0;
  int stop_descriptor = -1;
  Clock::time_point deadline;
};

// What the ranks know of each other afterwards.
struct Rendezvous {
  int leader = 0;                      // who gathered them: rank 0, or bare_front
  std::vector<RankAddress> addresses;  // by rank, behind them that of a bare front
  std::string token;
  // Of the leader: a connection to every rank, by rank; of others: one, to the leader, at [0]. They
  // stay open as the control plane.
  std::vector<Socket> control;
};

// `listeners` are where this rank will be found, `local_name` the name of the local one.
//
// The leader: waits at listeners.tcp for all others and tells them of each other. A rank that is
// doubled, counts another number of ranks or differs in `parts` ends it for all with one error that
// says so; at the deadline the error names the ranks that did not come. Connections of strangers
// are closed and logged.
Result<Rendezvous> gather_ranks(const RendezvousOptions& options, const RankListeners& listeners,
                                const std::string& local_name);

// Other ranks: go to the leader and wait for its word.
Result<Rendezvous> meet_leader(const RendezvousOptions& options, const RankListeners& listeners,
                               const std::string& local_name);

// A name that no other process has, for abstract sockets and tokens.
std::string random_name();

}  // namespace foretoken::group
