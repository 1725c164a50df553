#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "group/launch.h"
#include "group/rank_place.h"

namespace foretoken {

// Whether the parallel part of a configuration can be: sizes, hosts and how ranks run, together and
// with the device. The error names the flag and what to change.
Status check_parallel(const EngineConfig& config, const group::Environment& environment);

// What of launchers a process heeds: only that it is a child of this program's own, where its
// engines are named or served apart (host_flags.h).
group::Environment heeded_environment(const ParallelConfig& parallel,
                                      const group::Environment& environment);

// The ranks of one engine (dp = 1).
group::RankLayout layout_of_engine(const ParallelConfig& parallel);
// The ranks that meet: those of one engine, or of all engines where these have experts together or
// one front end for several processes.
group::RankLayout layout_of_group(const ParallelConfig& parallel,
                                  const group::Environment& environment);

// Whether requests come to one process alone, which gives them to the engines of all processes:
// those of several hosts, unless these have servers of their own or have experts together and no
// flag asks for it, or of a launcher. It is rank 0's, or one without engines.
bool has_one_front_end(const ParallelConfig& parallel, const group::Environment& environment);

// That the flags or LeaderWorkerSet tell of; 2 where engines are named, of how many hosts nobody
// says.
int num_hosts(const ParallelConfig& parallel, const group::Environment& environment);

// Whether the ranks of an engine are processes: asked for, on several hosts, or started by a
// launcher; otherwise they are threads of this one.
bool ranks_are_processes(const ParallelConfig& parallel, const group::Environment& environment);

// Whether the engines of this process meet ranks that are other processes: they have experts
// together, or one front end.
bool meets_other_processes(const ParallelConfig& parallel, const group::Environment& environment);

// This process's environment.
const char* process_environment(const char* name);

}  // namespace foretoken
