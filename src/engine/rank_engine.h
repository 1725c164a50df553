#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>

#include <memory>

#include "base/result.h"
#include "engine/start_barrier.h"
#include "engine/step/ranks.h"
#include "engine/step/test_hooks.h"
#include "group/rank_link.h"

namespace foretoken {

// The engine of rank 0 of a group whose other ranks call run_rank with their links and an equal
// configuration, but for device_ordinal. Blocks until all are ready. Errors of any rank come back
// here, and through the links to the others. `barrier`, which may be null: among engines that start
// at the same time.
Status make_rank_engine(const EngineConfig& config, group::LaneLinks links, StartBarrier* barrier,
                        std::unique_ptr<Engine>* engine);
// The same with links to the ranks of other engines.
Status make_rank_engine(const EngineConfig& config, RankLinks links, StartBarrier* barrier,
                        std::unique_ptr<Engine>* engine);

// A rank above 0: makes its part of the engine and runs rank 0's plans until rank 0 ends, or the
// group does with an error. Blocks.
Status run_rank(const EngineConfig& config, const TestHooks& hooks, group::LaneLinks links);
// The same with links to the ranks of other engines.
Status run_rank(const EngineConfig& config, const TestHooks& hooks, RankLinks links);

}  // namespace foretoken
