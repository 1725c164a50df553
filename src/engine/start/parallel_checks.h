#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "group/launch.h"
#include "group/rank_place.h"

namespace foretoken {

// Whether the parallel part of a configuration can be: sizes, hosts and how ranks run, together and
// with the device. The error names the flag and what to change.
Status check_parallel(const EngineConfig& config, const group::Environment& environment);

// The ranks of one engine (dp = 1).
group::RankLayout layout_of_engine(const ParallelConfig& parallel);
// The ranks whose layers meet: those of one engine, or of all where these have experts together.
group::RankLayout layout_of_group(const ParallelConfig& parallel);

// That the flags or LeaderWorkerSet tell of.
int num_hosts(const ParallelConfig& parallel, const group::Environment& environment);

// Whether the ranks of an engine are processes: asked for, on several hosts, or started by a
// launcher; otherwise they are threads of this one.
bool ranks_are_processes(const ParallelConfig& parallel, const group::Environment& environment);

// Whether the engines of this process have experts together with ranks that are other processes.
bool joins_experts_of_processes(const ParallelConfig& parallel,
                                const group::Environment& environment);

// This process's environment.
const char* process_environment(const char* name);

}  // namespace foretoken
