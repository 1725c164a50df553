#pragma once
#include <memory>

#include "group/child_ranks.h"
#include "group/launch.h"
#include "group/rank_group.h"

namespace foretoken::group {

struct ProcessGroupOptions {
  RankLayout layout;  // of one engine
  HostFlags hosts;
  int first_device = 0;  // GPU of the host's first rank
  AgreedParts parts;
  std::string communicator;  // sockets | mpi; empty: sockets
  std::chrono::seconds start_time{300};
  Environment environment;  // as getenv
};

// The group of processes that this one belongs to, however it was started: as one of mpirun's, as a
// host's first process that starts the others there, or as such a child. A child that dies ends the
// group.
class ProcessGroup {
 public:
  // Starts the children, and blocks until all ranks are connected.
  static Result<std::unique_ptr<ProcessGroup>> start(const ProcessGroupOptions& options);
  // Leaves the group; then the children have ended.
  ~ProcessGroup();

  RankGroup& group() { return *group_; }
  const LaunchPlan& plan() const { return plan_; }

 private:
  ProcessGroup() = default;
  void child_ended(const Status& why);

  LaunchPlan plan_;
  EndState start_;  // ends when a child dies while the ranks meet
  std::mutex mutex_;
  RankGroup* joined_ = nullptr;  // under the lock
  // Destroyed in reverse: the group first, so that children end by themselves.
  std::unique_ptr<ChildRanks> children_;
  std::unique_ptr<RankGroup> group_;
};

}  // namespace foretoken::group
