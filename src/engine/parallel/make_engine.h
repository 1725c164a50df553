#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/start_barrier.h"
#include "engine/step/ranks.h"

namespace foretoken {

// make_engine for a configuration whose data_parallel_size is 1. `barrier`, which may be null:
// among engines that start at the same time. `links`: of all its ranks, as threads of this process,
// where they have experts together with those of other engines.
Status make_one_engine(const EngineConfig& config, StartBarrier* barrier,
                       std::unique_ptr<Engine>* engine, std::vector<RankLinks> links = {});

}  // namespace foretoken
