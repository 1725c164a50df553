#include "group/rank_group.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "group/mpi_plugin.h"
#include "group/wire/address.h"

namespace foretoken::group {
namespace {

Result<RankListeners> listen_for_ranks(JoinOptions& options, const std::string& local_name) {
  RankListeners listeners;
  if (options.master_listener.open()) {
    listeners.tcp = std::move(options.master_listener);
  } else {
    const int port = options.gathers ? options.master_port : 0;
    FT_ASSIGN_OR_RETURN(listeners.tcp, listen_tcp("", port));
  }
  FT_ASSIGN_OR_RETURN(listeners.local, listen_local(local_name));
  return listeners;
}

std::vector<bool> among(const std::vector<int>& ranks, std::size_t num_members) {
  std::vector<bool> found(num_members);
  for (const int rank : ranks) found[static_cast<std::size_t>(rank)] = true;
  return found;
}

std::vector<int> own_rank(const JoinOptions& options) {
  if (options.rank == bare_front(options.layout)) return {};
  return {options.rank};
}

// With whom a rank is connected for the engines that get their requests from the front end.
std::vector<int> front_ranks(const JoinOptions& options, int leader) {
  const int each = options.layout.ranks_per_engine();
  std::vector<int> ranks;
  if (options.front == FrontSide::kFront) {
    const int first_far = options.own_engines * each;
    for (int rank = first_far; rank < options.layout.num_ranks(); rank += each) {
      ranks.push_back(rank);
    }
  } else if (options.front == FrontSide::kBehind && options.rank % each == 0) {
    ranks.push_back(leader);
  }
  return ranks;
}

// The ranks that one exchanges with in steps.
struct StepRanks {
  std::vector<int> own;     // of its engine
  std::vector<int> beside;  // at its place of other engines; none: they do not meet
};

StepRanks step_ranks(const JoinOptions& options) {
  if (options.rank == bare_front(options.layout)) return {};
  const RankPlace place = place_of(options.layout, options.rank);
  StepRanks ranks{.own = engine_ranks(options.layout, place), .beside = {}};
  if (options.engines_meet && options.layout.dp > 1) ranks.beside = dp_ranks(options.layout, place);
  return ranks;
}

// By lane and member, whether this one is connected with it.
std::vector<std::vector<bool>> wanted_connections(const JoinOptions& options,
                                                  const StepRanks& steps, int leader,
                                                  std::size_t num_members) {
  std::vector<int> all = steps.own;
  all.insert(all.end(), steps.beside.begin(), steps.beside.end());
  std::vector<std::vector<bool>> wanted(kNumLanes, among(all, num_members));
  wanted.resize(kNumLanes + kNumFrontLanes, among(front_ranks(options, leader), num_members));
  return wanted;
}

std::unique_ptr<RankLink> link_among(const std::shared_ptr<LinkShared>& shared,
                                     const std::vector<int>& ranks, std::vector<Socket>& lane) {
  std::vector<Socket> connections;
  for (const int rank : ranks) {
    connections.push_back(std::move(lane[static_cast<std::size_t>(rank)]));
  }
  return std::make_unique<SocketLink>(shared, ranks, std::move(connections));
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::join(JoinOptions options) {
  FT_CHECK(options.rank >= 0 && options.rank <= bare_front(options.layout));
  const std::string local_name = random_name();
  FT_ASSIGN_OR_RETURN(const RankListeners listeners, listen_for_ranks(options, local_name));
  if (options.gathers) options.master_port = port_of(listeners.tcp);
  const RendezvousOptions rendezvous{
      .layout = options.layout,
      .rank = options.rank,
      .master_host = options.master_host.empty() ? "127.0.0.1" : options.master_host,
      .master_port = options.master_port,
      .parts = options.parts,
      .own_ranks = options.own_ranks.empty() ? own_rank(options) : options.own_ranks,
      .pid = options.pid > 0 ? options.pid : getpid(),
      .stop_descriptor = options.stop_descriptor,
      .deadline = Clock::now() + options.start_time};
  FT_ASSIGN_OR_RETURN(Rendezvous found, options.gathers
                                            ? gather_ranks(rendezvous, listeners, local_name)
                                            : meet_leader(rendezvous, listeners, local_name));
  const StepRanks steps = step_ranks(options);
  FT_ASSIGN_OR_RETURN(auto lanes,
                      connect_mesh({.rank = options.rank,
                                    .num_lanes = kNumLanes + kNumFrontLanes,
                                    .addresses = found.addresses,
                                    .wanted = wanted_connections(options, steps, found.leader,
                                                                 found.addresses.size()),
                                    .token = found.token,
                                    .stop_descriptor = options.stop_descriptor,
                                    .deadline = rendezvous.deadline},
                                   listeners));
  std::unique_ptr<RankGroup> group(new RankGroup());
  group->shared_ = std::make_shared<LinkShared>();
  group->shared_->layout = options.layout;
  group->shared_->rank = options.rank;
  group->shared_->leader = found.leader;
  group->engines_meet_ = !steps.beside.empty();
  for (std::size_t lane = 0; lane < kNumLanes && !steps.own.empty(); ++lane) {
    group->links_[lane] = link_among(group->shared_, steps.own, lanes[lane]);
    if (group->engines_meet_) {
      group->beside_[lane] = link_among(group->shared_, steps.beside, lanes[lane]);
    }
  }
  for (std::size_t lane = 0; lane < kNumFrontLanes; ++lane) {
    group->front_[lane] = std::move(lanes[kNumLanes + lane]);
  }
  group->heartbeat_ =
      std::make_unique<Heartbeat>(group->shared_, std::move(found.control), options.heartbeat);
  return group;
}

RankGroup::~RankGroup() = default;

Status RankGroup::use_mpi(bool must) {
  const std::byte mine{has_mpi_plugin()};
  std::vector<std::byte> all(static_cast<std::size_t>(layout().ranks_per_engine()));
  RankLink& control = *links_[static_cast<std::size_t>(Lane::kControl)];
  FT_RETURN_IF_ERROR(control.all_gather({&mine, 1}, all, "the choice of MPI"));
  const auto without = std::find(all.begin(), all.end(), std::byte{0});
  if (without != all.end()) {
    if (!must) return {};
    return unsupported(
        "--communicator mpi: rank " + std::to_string(without - all.begin()) +
        " cannot open libforetoken_mpi.so or its MPI library; install libopenmpi-dev there and "
        "build again, or use --communicator sockets");
  }
  const RankPlace place = place_of(layout(), rank());
  const auto lane = static_cast<std::size_t>(Lane::kCollectives);
  FT_ASSIGN_OR_RETURN(links_[lane], open_mpi_link(shared_, engine_ranks(layout(), place)));
  if (engines_meet_) {
    FT_ASSIGN_OR_RETURN(beside_[lane], open_mpi_link(shared_, dp_ranks(layout(), place)));
  }
  uses_mpi_ = true;
  return {};
}

std::unique_ptr<RankLink> RankGroup::take_link(Lane lane) {
  auto& link = links_[static_cast<std::size_t>(lane)];
  FT_CHECK(link != nullptr);
  return std::move(link);
}

std::unique_ptr<RankLink> RankGroup::take_link_beside(Lane lane) {
  auto& link = beside_[static_cast<std::size_t>(lane)];
  FT_CHECK(link != nullptr);
  return std::move(link);
}

std::unique_ptr<RankLink> RankGroup::take_front_link(int engine, FrontLane lane) {
  const int first = engine * layout().ranks_per_engine();
  std::vector<Socket>& sockets = front_[static_cast<std::size_t>(lane)];
  const int leader = shared_->leader;
  const int peer = rank() == leader ? first : leader;
  if (!sockets[static_cast<std::size_t>(peer)].open()) return nullptr;
  return link_among(shared_, {leader, first}, sockets);
}

}  // namespace foretoken::group
