#include "engine/rank_engine.h"

#include <utility>

#include "engine/engine_impl.h"

namespace foretoken {

Status make_rank_engine(const EngineConfig& config, group::LaneLinks links, StartSeat* seat,
                        std::unique_ptr<Engine>* engine) {
  FT_ASSIGN_OR_RETURN(
      std::unique_ptr<EngineImpl> made,
      EngineImpl::create(config, TestHooks{}, EngineImpl::Start::kServing, std::move(links), seat));
  *engine = std::move(made);
  return {};
}

Status run_rank(const EngineConfig& config, const TestHooks& hooks, group::LaneLinks links) {
  FT_ASSIGN_OR_RETURN(
      const std::unique_ptr<EngineImpl> made,
      EngineImpl::create(config, hooks, EngineImpl::Start::kServing, std::move(links)));
  return made->run_rank();
}

}  // namespace foretoken
