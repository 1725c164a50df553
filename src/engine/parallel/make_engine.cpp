#include "engine/parallel/make_engine.h"

#include <utility>

#include "engine/engine_impl.h"
#include "engine/parallel/data_parallel_engine.h"
#include "engine/parallel/process_ranks.h"
#include "engine/start/host_flags.h"
#include "engine/start/parallel_checks.h"

namespace foretoken {

Status make_engine(const EngineConfig& given, std::unique_ptr<Engine>* engine) {
  EngineConfig config = given;
  FT_ASSIGN_OR_RETURN(config.parallel, with_hosts(given.parallel));
  FT_RETURN_IF_ERROR(check_parallel(config, process_environment));
  const bool has_others = config.parallel.data_parallel_size > 1 ||
                          meets_other_processes(config.parallel, process_environment);
  if (!has_others) return make_one_engine(config, nullptr, engine);
  FT_ASSIGN_OR_RETURN(*engine, DataParallelEngine::create(config));
  return {};
}

Status make_one_engine(const EngineConfig& config, StartBarrier* barrier,
                       std::unique_ptr<Engine>* engine, std::vector<RankLinks> links) {
  if (ranks_are_processes(config.parallel, process_environment)) {
    FT_ASSIGN_OR_RETURN(*engine, make_process_engine(config, process_environment, barrier));
    return {};
  }
  FT_ASSIGN_OR_RETURN(std::unique_ptr<EngineImpl> made,
                      EngineImpl::create(config, TestHooks{}, EngineImpl::Start::kServing,
                                         std::move(links), barrier));
  *engine = std::move(made);
  return {};
}

}  // namespace foretoken
