#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "group/rank_link.h"
#include "group/socket_link.h"

namespace foretoken::group {

// Whether libforetoken_mpi.so and the MPI library that it needs can be opened here.
bool has_mpi_plugin();

// A link over MPI between `ranks` of the processes that mpirun started; `shared` as of the socket
// links, whose control plane watches over it. Called by all ranks at once, before the first link is
// used. Links of a process are used by one thread at a time, and no two of them join the same pair
// of ranks. Unsupported without the plug-in; InvalidArgument where MPI counts other ranks than
// `shared`.
Result<std::unique_ptr<RankLink>> open_mpi_link(std::shared_ptr<LinkShared> shared,
                                                std::span<const int> ranks);

// What the plug-in exports. The number changes with anything that both sides see.
inline constexpr int kMpiPluginAbi = 4;
using MpiAbiFn = int (*)();
using MpiOpenFn = RankLink* (*)(const std::shared_ptr<LinkShared>* shared, const int* ranks,
                                std::size_t num_ranks, char* error, std::size_t error_size);

}  // namespace foretoken::group
