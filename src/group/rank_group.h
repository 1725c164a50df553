#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "group/heartbeat.h"
#include "group/rendezvous.h"
#include "group/socket_link.h"

namespace foretoken::group {

// Where a place of the group stands to the process that requests come to, if that is one for all
// engines; with it the first rank of each engine in another process is connected.
enum class FrontSide : uint8_t {
  kNone,    // every process has requests of its own
  kFront,   // that process: rank 0's, or one without engines (bare_front)
  kBeside,  // another engine's rank of that process
  kBehind,  // another process
};

struct JoinOptions {
  RankLayout layout;
  int rank = 0;                  // bare_front: it is none
  bool gathers = false;          // the others come to this one: rank 0's process, or a bare front
  std::string master_host = {};  // of the one that gathers; empty: this host alone
  int master_port = 0;
  Socket master_listener = {};  // of that, where it listens already; else it listens at master_port
  AgreedParts parts = {};       // what all ranks must have alike
  // Whether the engines' layers meet: ranks at the same place of all engines are connected.
  bool engines_meet = true;
  FrontSide front = FrontSide::kNone;
  int own_engines = 0;  // of the one that gathers: so many first engines are its own process's
  std::vector<int> own_ranks = {};       // all of this process, which join at once; empty: this one
  int pid = 0;                           // 0: of this process
  std::chrono::seconds start_time{300};  // for all to come
  HeartbeatTimes heartbeat = {};
  int stop_descriptor = -1;  // readable: joining stops
};

// What goes between the front end and the first ranks of engines in other processes.
enum class FrontLane : int { kRequests = 0, kOutputs = 1 };
inline constexpr int kNumFrontLanes = 2;

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
  // Whether the engines' layers meet (JoinOptions::engines_meet), so that the next call has links.
  bool engines_meet() const { return engines_meet_; }
  // To the ranks at this one's place in the other engines, where there are several; once.
  std::unique_ptr<RankLink> take_link_beside(Lane lane);
  // Between the front end and the first rank of `engine`, on either of the two; once. Null where
  // they are not connected.
  std::unique_ptr<RankLink> take_front_link(int engine, FrontLane lane);
  // Ends the group for all ranks. Any thread.
  void end(const Status& why) { shared_->end.end(why); }
  // Why the group has ended; ok while it lives.
  Status ended() const { return shared_->end.why(); }

 private:
  RankGroup() = default;

  std::shared_ptr<LinkShared> shared_;
  std::array<std::unique_ptr<RankLink>, kNumLanes> links_;
  std::array<std::unique_ptr<RankLink>, kNumLanes> beside_;
  std::array<std::vector<Socket>, kNumFrontLanes> front_;  // by rank
  std::unique_ptr<Heartbeat> heartbeat_;
  bool engines_meet_ = false;
  bool uses_mpi_ = false;
};

}  // namespace foretoken::group
