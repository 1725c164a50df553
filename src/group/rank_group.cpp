#include "group/rank_group.h"

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
    const int port = options.rank == 0 ? options.master_port : 0;
    FT_ASSIGN_OR_RETURN(listeners.tcp, listen_tcp("", port));
  }
  FT_ASSIGN_OR_RETURN(listeners.local, listen_local(local_name));
  return listeners;
}

// By rank, whether it is in one of the lists.
std::vector<bool> either(const std::vector<int>& a, const std::vector<int>& b,
                         const RankLayout& layout) {
  std::vector<bool> found(static_cast<std::size_t>(layout.num_ranks()));
  for (const std::vector<int>* ranks : {&a, &b}) {
    for (const int rank : *ranks) found[static_cast<std::size_t>(rank)] = true;
  }
  return found;
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
  FT_CHECK(options.rank >= 0 && options.rank < options.layout.num_ranks());
  const std::string local_name = random_name();
  FT_ASSIGN_OR_RETURN(const RankListeners listeners, listen_for_ranks(options, local_name));
  if (options.rank == 0) options.master_port = port_of(listeners.tcp);
  const RendezvousOptions rendezvous{
      .layout = options.layout,
      .rank = options.rank,
      .master_host = options.master_host.empty() ? "127.0.0.1" : options.master_host,
      .master_port = options.master_port,
      .parts = options.parts,
      .stop_descriptor = options.stop_descriptor,
      .deadline = Clock::now() + options.start_time};
  FT_ASSIGN_OR_RETURN(Rendezvous found, options.rank == 0
                                            ? gather_ranks(rendezvous, listeners, local_name)
                                            : meet_rank_0(rendezvous, listeners, local_name));
  const RankPlace place = place_of(options.layout, options.rank);
  const std::vector<int> own = engine_ranks(options.layout, place);
  const std::vector<int> beside = dp_ranks(options.layout, place);
  FT_ASSIGN_OR_RETURN(auto lanes, connect_mesh({.rank = options.rank,
                                                .num_lanes = kNumLanes,
                                                .addresses = found.addresses,
                                                .wanted = either(own, beside, options.layout),
                                                .token = found.token,
                                                .stop_descriptor = options.stop_descriptor,
                                                .deadline = rendezvous.deadline},
                                               listeners));
  std::unique_ptr<RankGroup> group(new RankGroup());
  group->shared_ = std::make_shared<LinkShared>();
  group->shared_->layout = options.layout;
  group->shared_->rank = options.rank;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    group->links_[lane] = link_among(group->shared_, own, lanes[lane]);
    if (options.layout.dp > 1) {
      group->beside_[lane] = link_among(group->shared_, beside, lanes[lane]);
    }
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
  FT_ASSIGN_OR_RETURN(links_[static_cast<std::size_t>(Lane::kCollectives)], open_mpi_link(shared_));
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

}  // namespace foretoken::group
