#pragma once
#include <foretoken/engine.h>

#include <memory>
#include <optional>

#include "base/result.h"
#include "engine/start_barrier.h"
#include "group/launch.h"
#include "group/process_group.h"

namespace foretoken {

// The engine of rank 0 whose other ranks are processes: starts those of this host, waits for all,
// and makes the engine together with them. When the group has ended, every call says why.
// `barrier`, which may be null: among engines that start at the same time.
Result<std::unique_ptr<Engine>> make_process_engine(const EngineConfig& config,
                                                    const group::Environment& environment,
                                                    StartBarrier* barrier);

// Of engines whose ranks meet other processes (meets_other_processes): starts those of this host
// and waits for all. `config` is that of all engines.
Result<std::shared_ptr<group::ProcessGroup>> meet_engines(const EngineConfig& config,
                                                          const group::Environment& environment);
// The configuration of the `index`th engine of this process, `config` being that of all.
EngineConfig config_of_own_engine(const EngineConfig& config, const group::LaunchPlan& plan,
                                  int index, const group::Environment& environment);
// The `index`th engine of this process, whose configuration is `config`.
Result<std::unique_ptr<Engine>> make_engine_of_group(std::shared_ptr<group::ProcessGroup> processes,
                                                     int index, const EngineConfig& config,
                                                     StartBarrier* barrier);

// What a process whose rank is above 0 does in place of its command: meets the others and runs
// rank 0's plans, or, as the first rank of an engine behind a front end, requests that come from
// there, until rank 0 ends. Ok then; otherwise why the group has ended. SIGINT and SIGTERM are rank
// 0's to act on, and ignored once the ranks have met.
Status run_process_rank(const EngineConfig& config, const group::Environment& environment);

// That the process of `rank` cannot take requests.
Status no_front_end(int rank);

// This process's rank among those that meet, where it has no requests of its own; none where it
// takes requests: as the front end, as the first rank of an engine with a server, or alone.
Result<std::optional<int>> rank_without_requests(const ParallelConfig& parallel,
                                                 const group::Environment& environment);

}  // namespace foretoken
