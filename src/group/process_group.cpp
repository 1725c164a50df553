#include "group/process_group.h"

#include "group/address.h"

namespace foretoken::group {
namespace {

// This host alone: nobody outside needs to reach rank 0.
constexpr const char* kThisHost = "127.0.0.1";

std::vector<ChildRank> children_of(const LaunchPlan& plan, int first_device) {
  std::vector<ChildRank> children;
  for (int rank = plan.first_child; rank < plan.end_child; ++rank) {
    children.push_back({rank, plan.master_host, plan.master_port, first_device});
  }
  return children;
}

}  // namespace

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::start(const ProcessGroupOptions& options) {
  std::unique_ptr<ProcessGroup> self(new ProcessGroup());
  LaunchPlan& plan = self->plan_;
  FT_ASSIGN_OR_RETURN(plan, plan_launch(options.layout, options.hosts, options.environment));
  JoinOptions join{.layout = options.layout,
                   .rank = plan.rank,
                   .parts = options.parts,
                   .start_time = options.start_time,
                   .heartbeat = {},
                   .stop_descriptor = self->start_.descriptor()};
  if (plan.rank == 0) {
    const bool alone = plan.master_host.empty();
    if (alone) plan.master_host = kThisHost;
    FT_ASSIGN_OR_RETURN(join.master_listener,
                        listen_tcp(alone ? plan.master_host : "", plan.master_port));
    plan.master_port = port_of(join.master_listener);
  }
  join.master_host = plan.master_host;
  join.master_port = plan.master_port;
  const std::vector<ChildRank> children = children_of(plan, options.first_device);
  if (!children.empty()) {
    FT_ASSIGN_OR_RETURN(self->children_,
                        ChildRanks::start(children, [raw = self.get()](const Status& why) {
                          raw->child_ended(why);
                        }));
  }
  Result<std::unique_ptr<RankGroup>> group = RankGroup::join(std::move(join));
  if (!group.ok()) return self->start_.ended() ? self->start_.why() : group.status();
  self->group_ = std::move(group).value();
  if (options.communicator == "mpi") FT_RETURN_IF_ERROR(self->group_->use_mpi(true));
  const std::lock_guard lock(self->mutex_);
  self->joined_ = self->group_.get();
  if (self->start_.ended()) self->joined_->end(self->start_.why());
  return self;
}

ProcessGroup::~ProcessGroup() {
  const std::lock_guard lock(mutex_);
  joined_ = nullptr;
}

void ProcessGroup::child_ended(const Status& why) {
  start_.end(why);
  const std::lock_guard lock(mutex_);
  if (joined_ != nullptr) joined_->end(why);
}

}  // namespace foretoken::group
