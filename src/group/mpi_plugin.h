#pragma once
#include <memory>

#include "base/result.h"
#include "group/rank_link.h"
#include "group/socket_link.h"

namespace foretoken::group {

// Whether libforetoken_mpi.so and the MPI library that it needs can be opened here.
bool has_mpi_plugin();

// A link over MPI between the processes that mpirun started; `shared` as of the socket links, whose
// control plane watches over it. Called by all ranks at once, once in a process. Unsupported
// without the plug-in; InvalidArgument where MPI counts other ranks than `shared`.
Result<std::unique_ptr<RankLink>> open_mpi_link(std::shared_ptr<LinkShared> shared);

// What the plug-in exports. The number changes with anything that both sides see.
inline constexpr int kMpiPluginAbi = 3;
using MpiAbiFn = int (*)();
using MpiOpenFn = RankLink* (*)(const std::shared_ptr<LinkShared>* shared, char* error,
                                std::size_t error_size);

}  // namespace foretoken::group
