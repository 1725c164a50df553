#pragma once
#include <foretoken/engine.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "group/launch.h"
#include "group/process_group.h"

namespace foretoken {

struct StartedEngines {
  std::unique_ptr<Engine> texts;  // where no engine is of this process; outlives them
  std::vector<std::unique_ptr<Engine>> engines;
  int num_here = 0;  // the first ones, of this process; the others are of other processes
};

// The engines that this process serves, all at once: config.parallel.data_parallel_size of them;
// where hosts have servers of their own and experts together, those of this host; where they have
// one front end (has_one_front_end), those of other processes behind its own. Unsupported in a
// process that is not the front end. `config` has been through with_hosts.
Result<StartedEngines> start_engines(const EngineConfig& config,
                                     const group::Environment& environment);

// Those of this process of a group, `config` being that of all.
Result<std::vector<std::unique_ptr<Engine>>> start_own_engines(
    const std::shared_ptr<group::ProcessGroup>& processes, const EngineConfig& config,
    const group::Environment& environment);

// Runs the engines of this process, which is not the front end, until that is done or the group has
// ended; ok in the first case.
Status run_engines_behind(std::shared_ptr<group::ProcessGroup> processes,
                          const EngineConfig& config, const group::Environment& environment);

// Engines whose layers meet end only together.
void end_together(std::vector<std::unique_ptr<Engine>>& engines);

}  // namespace foretoken
