#pragma once
#include <foretoken/config.h>

#include "base/result.h"

namespace foretoken {

// `parallel` with its hosts (nnodes, node_rank) as vLLM's names for data parallel engines say:
// data_parallel_size_local of them are on each host, data_parallel_start_rank is the first of this
// one. InvalidArgument where the two ways contradict each other or hosts would have different
// numbers of engines. What has been through it stays as it is.
Result<ParallelConfig> with_hosts(ParallelConfig parallel);

}  // namespace foretoken
