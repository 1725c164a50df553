#include "group/process_group.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "group/wire/address.h"

namespace foretoken::group {
namespace {

// This host alone: nobody outside needs to reach rank 0.
constexpr const char* kThisHost = "127.0.0.1";

// Of the `engine`th of this process's places.
FrontSide front_side(const ProcessGroupOptions& options, const LaunchPlan& plan,
                     std::size_t engine) {
  if (!options.has_one_front) return FrontSide::kNone;
  if (!plan.gathers()) return FrontSide::kBehind;
  return engine == 0 ? FrontSide::kFront : FrontSide::kBeside;
}

std::vector<ChildRank> children_of(const LaunchPlan& plan, const ProcessGroupOptions& options) {
  std::vector<ChildRank> children;
  for (int rank = plan.first_child; rank < plan.end_child; ++rank) {
    if (rank % options.layout.ranks_per_engine() == 0) continue;
    children.push_back({rank, plan.master_host, plan.master_port, options.first_device});
  }
  return children;
}

// Ends `start` once `cancelled` is set, which may be null.
std::jthread watch_cancel(EndState& start, const std::atomic<bool>* cancelled) {
  if (cancelled == nullptr) return {};
  return std::jthread([&start, cancelled](const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kBetweenStops(50);
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!cancelled->load() && !stop.stop_requested()) {
      stopped.wait_for(lock, stop, kBetweenStops, [] { return false; });
    }
    if (cancelled->load()) start.end(aborted("loading was interrupted"));
  });
}

}  // namespace

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::start(const ProcessGroupOptions& options) {
  std::unique_ptr<ProcessGroup> self(new ProcessGroup());
  LaunchPlan& plan = self->plan_;
  FT_ASSIGN_OR_RETURN(plan, plan_launch(options.layout, options.hosts, options.environment));
  Socket listener;
  if (plan.gathers()) {
    const bool alone = plan.master_host.empty();
    if (alone) plan.master_host = kThisHost;
    FT_ASSIGN_OR_RETURN(listener, listen_tcp(alone ? plan.master_host : "", plan.master_port));
    plan.master_port = port_of(listener);
  }
  const std::vector<ChildRank> children = children_of(plan, options);
  if (!children.empty()) {
    FT_ASSIGN_OR_RETURN(self->children_,
                        ChildRanks::start(children, [raw = self.get()](const Status& why) {
                          raw->child_ended(why);
                        }));
  }
  const Status joined = self->join(options, std::move(listener));
  if (!joined.ok()) return self->start_.ended() ? self->start_.why() : joined;
  const bool is_rank = plan.num_engines > 0;
  if (options.communicator == "mpi" && is_rank) FT_RETURN_IF_ERROR(self->group().use_mpi(true));
  const std::lock_guard lock(self->mutex_);
  self->joined_ = true;
  if (self->start_.ended()) self->group().end(self->start_.why());
  return self;
}

// All places at once, since each waits for the others.
Status ProcessGroup::join(const ProcessGroupOptions& options, Socket listener) {
  const std::jthread watcher = watch_cancel(start_, options.cancelled);
  groups_.resize(static_cast<std::size_t>(std::max(plan_.num_engines, 1)));
  std::vector<int> own_ranks;
  for (int i = 0; i < plan_.num_engines; ++i) {
    own_ranks.push_back(plan_.rank + i * options.layout.ranks_per_engine());
  }
  std::vector<std::future<Status>> joins;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    JoinOptions place{.layout = options.layout,
                      .rank = plan_.rank + static_cast<int>(i) * options.layout.ranks_per_engine(),
                      .gathers = plan_.gathers() && i == 0,
                      .master_host = plan_.master_host,
                      .master_port = plan_.master_port,
                      .master_listener = std::exchange(listener, Socket()),
                      .parts = options.parts,
                      .engines_meet = options.engines_meet,
                      .front = front_side(options, plan_, i),
                      .own_engines = plan_.num_engines,
                      .own_ranks = own_ranks,
                      .start_time = options.start_time,
                      .heartbeat = {},
                      .stop_descriptor = start_.descriptor()};
    joins.push_back(std::async(std::launch::async, [this, i, own = std::move(place)]() mutable {
      Result<std::unique_ptr<RankGroup>> group = RankGroup::join(std::move(own));
      // The others need not wait for it.
      if (!group.ok()) start_.end(group.status());
      if (!group.ok()) return group.status();
      groups_[i] = std::move(group).value();
      return Status();
    }));
  }
  Status status;
  for (std::future<Status>& each : joins) {
    const Status one = each.get();
    if (status.ok()) status = one;
  }
  return status;
}

// The first rank of the first engine leaves last, since that ends the group.
ProcessGroup::~ProcessGroup() {
  {
    const std::lock_guard lock(mutex_);
    joined_ = false;
  }
  while (!groups_.empty()) groups_.pop_back();
}

void ProcessGroup::child_ended(const Status& why) {
  start_.end(why);
  const std::lock_guard lock(mutex_);
  if (joined_) group().end(why);
}

}  // namespace foretoken::group
