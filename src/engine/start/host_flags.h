#pragma once
#include <foretoken/config.h>

#include "base/result.h"

namespace foretoken {

// What the flags of hosts say, vLLM's names among them, in one of these forms:
// - nnodes and node_rank, where hosts have equal shares or are the ranks of one engine;
// - data_parallel_size_local and data_parallel_start_rank, both from 0 up, where this host's
//   engines are named: those of a server that all engines have together, or, with
//   enable_expert_parallel, of one of several servers (data_parallel_hybrid_lb or
//   data_parallel_external_lb);
// - data_parallel_hybrid_lb or data_parallel_external_lb without data_parallel_size_local: this
//   server's engines have nothing to do with those of others. data_parallel_size is their number,
//   data_parallel_start_rank that of the first.
// InvalidArgument where flags contradict each other or name engines that there are not. Not for
// what it has made.
Result<ParallelConfig> with_hosts(ParallelConfig parallel);

// Whether it is of the second form, or of the third.
bool names_own_engines(const ParallelConfig& parallel);
bool serves_apart(const ParallelConfig& parallel);

}  // namespace foretoken
