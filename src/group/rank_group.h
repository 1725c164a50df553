#pragma once
#include <array>
#include <memory>
#include <string>

#include "group/heartbeat.h"
#include "group/rendezvous.h"
#include "group/socket_link.h"

namespace foretoken::group {

struct JoinOptions {
  RankLayout layout;
  int rank = 0;
  std::string master_host = {};  // of rank 0; empty: this host alone
  int master_port = 0;
  Socket master_listener =
      {};                  // rank 0's, where it listens already; else it listens at master_port
  AgreedParts parts = {};  // what all ranks must have alike
  std::chrono::seconds start_time{300};  // for all to come
  HeartbeatTimes heartbeat = {};
  int stop_descriptor = -1;  // readable: joining stops
};

// This process's place in a group of processes: connections to the ranks of its engine and to those
// at its place in other engines, and the watch over all. The ranks stay together until one ends;
// then all do. A process may have several places, one for the first rank of each engine in it.
class RankGroup {
 public:
  // Blocks until every rank of the layout is there and connected.
  static Result<std::unique_ptr<RankGroup>> join(JoinOptions options);
  // Leaves as meant (Heartbeat); links that live on return errors.
  ~RankGroup();

  int rank() const { return shared_->rank; }
  const RankLayout& layout() const { return shared_->layout; }
  // All ranks at once, before the links are taken: collectives go over MPI from now on, where every
  // rank can. `must`: an error where one cannot; otherwise they stay with sockets.
  Status use_mpi(bool must);
  bool uses_mpi() const { return uses_mpi_; }
  // To the ranks of this one's engine; once for each lane.
  std::unique_ptr<RankLink> take_link(Lane lane);
  // To the ranks at this one's place in the other engines, where there are several; once.
  std::unique_ptr<RankLink> take_link_beside(Lane lane);
  // Ends the group for all ranks. Any thread.
  void end(const Status& why) { shared_->end.end(why); }
  // Why the group has ended; ok while it lives.
  Status ended() const { return shared_->end.why(); }

 private:
  RankGroup() = default;

  std::shared_ptr<LinkShared> shared_;
  std::array<std::unique_ptr<RankLink>, kNumLanes> links_;
  std::array<std::unique_ptr<RankLink>, kNumLanes> beside_;
  std::unique_ptr<Heartbeat> heartbeat_;
  bool uses_mpi_ = false;
};

}  // namespace foretoken::group
