#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "group/child_ranks.h"
#include "group/launch.h"
#include "group/rank_group.h"

namespace foretoken::group {

struct ProcessGroupOptions {
  RankLayout layout;  // as of plan_launch
  HostFlags hosts;
  int first_device = 0;  // GPU of the host's first rank
  AgreedParts parts;
  bool engines_meet = true;    // as of JoinOptions
  bool has_one_front = false;  // requests come to the process that gathers the ranks
  std::string communicator;    // sockets | mpi; empty: sockets
  std::chrono::seconds start_time{300};
  Environment environment;                       // as getenv
  const std::atomic<bool>* cancelled = nullptr;  // set, it ends the start with Aborted; may be null
};

// The group of processes that this one belongs to, however it was started: as one of mpirun's, as a
// host's first process that starts the others there, or as such a child. A host's first process is
// the first rank of each of its engines, with a place in the group for each. A child that dies ends
// the group.
class ProcessGroup {
 public:
  // Starts the children, and blocks until all ranks are connected.
  static Result<std::unique_ptr<ProcessGroup>> start(const ProcessGroupOptions& options);
  // Leaves the group; then the children have ended.
  ~ProcessGroup();

  // This process's place as a rank of the `engine`th of its engines; of a front end without engines
  // its only place.
  RankGroup& group(int engine = 0) { return *groups_[static_cast<std::size_t>(engine)]; }
  const LaunchPlan& plan() const { return plan_; }

 private:
  ProcessGroup() = default;
  Status join(const ProcessGroupOptions& options, Socket listener);
  void child_ended(const Status& why);

  LaunchPlan plan_;
  EndState start_;  // ends when a child dies, or the start is cancelled, while the ranks meet
  std::mutex mutex_;
  bool joined_ = false;  // under the lock; then a child's end is the groups'
  // Destroyed in reverse: the groups first, so that children end by themselves.
  std::unique_ptr<ChildRanks> children_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
};

}  // namespace foretoken::group
