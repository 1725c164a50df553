#include "engine/rank_engine.h"

#include <utility>
#include <vector>

#include "engine/engine_impl.h"

namespace foretoken {

Status make_rank_engine(const EngineConfig& config, group::LaneLinks links, StartBarrier* barrier,
                        std::unique_ptr<Engine>* engine) {
  return make_rank_engine(config, RankLinks{std::move(links), {}}, barrier, engine);
}

Status make_rank_engine(const EngineConfig& config, RankLinks links, StartBarrier* barrier,
                        std::unique_ptr<Engine>* engine) {
  std::vector<RankLinks> own;
  own.push_back(std::move(links));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<EngineImpl> made,
                      EngineImpl::create(config, TestHooks{}, EngineImpl::Start::kServing,
                                         std::move(own), barrier));
  *engine = std::move(made);
  return {};
}

Status run_rank(const EngineConfig& config, const TestHooks& hooks, group::LaneLinks links) {
  return run_rank(config, hooks, RankLinks{std::move(links), {}});
}

Status run_rank(const EngineConfig& config, const TestHooks& hooks, RankLinks links) {
  std::vector<RankLinks> own;
  own.push_back(std::move(links));
  FT_ASSIGN_OR_RETURN(
      const std::unique_ptr<EngineImpl> made,
      EngineImpl::create(config, hooks, EngineImpl::Start::kServing, std::move(own)));
  return made->run_rank();
}

}  // namespace foretoken
