#include "apps/options/rank_process.h"

#include "apps/terminal/report.h"
#include "engine/parallel/process_ranks.h"
#include "engine/start/host_flags.h"
#include "engine/start/parallel_checks.h"

namespace foretoken {
namespace {

const EngineOptions* noted = nullptr;

Status run_rank_of(const EngineOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig config, prepare_engine(options));
  FT_ASSIGN_OR_RETURN(config.parallel, with_hosts(config.parallel));
  FT_RETURN_IF_ERROR(check_parallel(config, process_environment));
  return run_process_rank(config, process_environment);
}

Result<std::optional<int>> own_rank(const ParallelConfig& given) {
  FT_ASSIGN_OR_RETURN(const ParallelConfig parallel, with_hosts(given));
  return rank_without_requests(parallel, process_environment);
}

}  // namespace

void note_engine_options(const EngineOptions& options) { noted = &options; }

std::optional<int> run_as_other_rank() {
  if (noted == nullptr) return std::nullopt;
  const Result<std::optional<int>> rank = own_rank(noted->config.parallel);
  if (rank.ok() && !rank.value()) return std::nullopt;
  const Status ended = rank.ok() ? run_rank_of(*noted) : rank.status();
  if (ended.ok()) return 0;
  report_error(rank.ok() ? "rank " + std::to_string(*rank.value()) + ": " + ended.message()
                         : ended.message());
  return kExitError;
}

}  // namespace foretoken
