#pragma once
#include <optional>

#include "apps/options/engine_options.h"

namespace foretoken {

// The engine options of the command that was parsed, which must live until the program ends.
void note_engine_options(const EngineOptions& options);

// Where this process has no requests of its own (a rank above 0, started by rank 0, mpirun, srun,
// ... or --node-rank, or one behind another host's server): runs as that in place of its command,
// and returns the exit code. Nothing for other processes and for commands without an engine.
std::optional<int> run_as_other_rank();

}  // namespace foretoken
