#include "engine/start/parallel_checks.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "compat/combination.h"
#include "config/engine_fields.h"
#include "engine/start/host_flags.h"

namespace foretoken {
namespace {

Status check_hosts(const ParallelConfig& parallel) {
  if (parallel.nnodes < 1 || parallel.node_rank < 0 || parallel.node_rank >= parallel.nnodes) {
    return invalid_argument("--node-rank " + std::to_string(parallel.node_rank) +
                            " is not one of --nnodes " + std::to_string(parallel.nnodes));
  }
  return {};
}

}  // namespace

Status check_parallel(const EngineConfig& config, const group::Environment& environment) {
  const ParallelConfig& parallel = config.parallel;
  FT_RETURN_IF_ERROR(group::check_layout({.tp = parallel.tensor_parallel_size,
                                          .pp = parallel.pipeline_parallel_size,
                                          .dp = parallel.data_parallel_size}));
  for (const char* name : {"distributed_executor_backend", "communicator", "master_port"}) {
    FT_RETURN_IF_ERROR(check_engine_field(*find_engine_field(name), config));
  }
  FT_RETURN_IF_ERROR(check_hosts(parallel));
  Combination c = combination_of(config);
  c.num_hosts = num_hosts(parallel, environment);
  return compat(c);
}

group::Environment heeded_environment(const ParallelConfig& parallel,
                                      const group::Environment& environment) {
  if (!names_own_engines(parallel) && !serves_apart(parallel)) return environment;
  return [environment](const char* name) -> const char* {
    const std::string_view asked(name);
    const bool is_own = asked == group::kChildRankVariable ||
                        asked == group::kChildMasterVariable ||
                        asked == group::kChildDeviceVariable;
    return is_own ? environment(name) : nullptr;
  };
}

group::RankLayout layout_of_engine(const ParallelConfig& parallel) {
  return {.tp = parallel.tensor_parallel_size, .pp = parallel.pipeline_parallel_size, .dp = 1};
}

group::RankLayout layout_of_group(const ParallelConfig& parallel,
                                  const group::Environment& environment) {
  group::RankLayout layout = layout_of_engine(parallel);
  if (parallel.enable_expert_parallel || has_one_front_end(parallel, environment)) {
    layout.dp = parallel.data_parallel_size;
  }
  return layout;
}

bool has_one_front_end(const ParallelConfig& parallel, const group::Environment& environment) {
  if (parallel.data_parallel_hybrid_lb || parallel.data_parallel_external_lb) return false;
  if (names_own_engines(parallel)) return true;
  if (parallel.data_parallel_size <= 1) return false;
  const int hosts = num_hosts(parallel, environment);
  if (hosts == 1) return group::has_launcher(environment);
  return !parallel.enable_expert_parallel || parallel.headless;
}

int num_hosts(const ParallelConfig& parallel, const group::Environment& environment) {
  if (parallel.nnodes > 1) return parallel.nnodes;
  if (serves_apart(parallel)) return 1;
  if (names_own_engines(parallel)) return 2;
  const char* told = environment("LWS_GROUP_SIZE");
  if (told == nullptr) return 1;
  int hosts = 0;
  const std::string_view text(told);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), hosts);
  // What is no number is refused by name where ranks are launched.
  const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_number ? std::max(hosts, 1) : 2;
}

bool ranks_are_processes(const ParallelConfig& parallel, const group::Environment& environment) {
  if (parallel.distributed_executor_backend == "mp" || parallel.nnodes > 1 ||
      names_own_engines(parallel)) {
    return layout_of_engine(parallel).num_ranks() > 1;
  }
  return group::started_as_rank(heeded_environment(parallel, environment)) ||
         num_hosts(parallel, environment) > 1;
}

bool meets_other_processes(const ParallelConfig& parallel, const group::Environment& environment) {
  if (names_own_engines(parallel)) return true;
  return layout_of_group(parallel, environment).dp > 1 &&
         (ranks_are_processes(parallel, environment) || num_hosts(parallel, environment) > 1);
}

const char* process_environment(const char* name) { return std::getenv(name); }

}  // namespace foretoken
