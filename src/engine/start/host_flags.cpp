#include "engine/start/host_flags.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>

#include "compat/compat.h"

namespace foretoken {
namespace {

// "--nnodes 2".
std::string given(const char* flag, int value) {
  return std::string(flag) + " " + std::to_string(value);
}
std::string given_local(const ParallelConfig& parallel) {
  return given("--data-parallel-size-local", parallel.data_parallel_size_local);
}
std::string given_start(const ParallelConfig& parallel) {
  return given("--data-parallel-start-rank", parallel.data_parallel_start_rank);
}

Status contradiction(const std::string& one, const std::string& other) {
  return invalid_argument(one + " and " + other + " contradict each other; leave one of them out");
}

bool has_own_server(const ParallelConfig& parallel) {
  return parallel.data_parallel_hybrid_lb || parallel.data_parallel_external_lb;
}

// Which engines have a server, where one flag says it by another.
void take_servers(ParallelConfig& parallel) {
  if (parallel.data_parallel_rank >= 0) parallel.data_parallel_external_lb = true;
  const int local = parallel.data_parallel_size_local;
  if (parallel.data_parallel_start_rank > 0 && local > 0 && !parallel.headless &&
      !parallel.data_parallel_external_lb) {
    parallel.data_parallel_hybrid_lb = true;
  }
}

Status check_servers(const ParallelConfig& parallel) {
  Combination c;
  c.server_per_host = parallel.data_parallel_hybrid_lb;
  c.server_per_engine = parallel.data_parallel_external_lb;
  c.no_server = parallel.headless;
  if (parallel.data_parallel_size_local >= 0) {
    c.num_local_engines = parallel.data_parallel_size_local;
  }
  return compat(c);
}

// Engines of each of --nnodes.
Result<int> equal_share(const ParallelConfig& parallel) {
  const int engines = parallel.data_parallel_size, hosts = parallel.nnodes;
  if (engines % hosts == 0) return engines / hosts;
  return invalid_argument(given("--data-parallel-size", engines) + " cannot be divided among " +
                          given("--nnodes", hosts) +
                          "; say how many engines this host has, with --data-parallel-size-local, "
                          "and which is the first, with --data-parallel-start-rank");
}

// The engine of a server that has one alone, as start rank.
Status take_only_engine(ParallelConfig& parallel) {
  const int rank = parallel.data_parallel_rank, start = parallel.data_parallel_start_rank;
  if (rank >= 0 && start >= 0 && rank != start) {
    return contradiction(given("--data-parallel-rank", rank), given_start(parallel));
  }
  if (rank >= 0 || start >= 0) {
    parallel.data_parallel_start_rank = std::max(rank, start);
  } else if (parallel.nnodes > 1 && parallel.nnodes == parallel.data_parallel_size) {
    parallel.data_parallel_start_rank = parallel.node_rank;
  } else if (parallel.data_parallel_size > 1) {
    return invalid_argument(
        "--data-parallel-external-lb: say which engine this server has, with --data-parallel-rank");
  }
  parallel.data_parallel_size_local = 1;
  if (parallel.data_parallel_start_rank < parallel.data_parallel_size) return {};
  return invalid_argument(
      given("--data-parallel-rank", parallel.data_parallel_start_rank) + " is no engine of " +
      given("--data-parallel-size", parallel.data_parallel_size) + ", which are numbered from 0");
}

// Engines of a host with a server of its own: how many there are, where the flags do not say.
Status take_share_of_server(ParallelConfig& parallel) {
  if (parallel.data_parallel_size_local >= 0) return {};
  if (parallel.nnodes == 1 && parallel.data_parallel_size > 1) {
    return invalid_argument(
        "--data-parallel-hybrid-lb: say how many engines this host has, with "
        "--data-parallel-size-local");
  }
  FT_ASSIGN_OR_RETURN(parallel.data_parallel_size_local, equal_share(parallel));
  return {};
}

// The number of the first engine, where --data-parallel-size-local says how many.
Status take_first_engine(ParallelConfig& parallel) {
  const int64_t local = parallel.data_parallel_size_local, hosts = parallel.nnodes;
  int64_t start = parallel.data_parallel_start_rank;
  const bool is_equal = local * hosts == parallel.data_parallel_size;
  if (hosts > 1 && start < 0) {
    if (!is_equal && local > 0) {
      return contradiction(given("--nnodes", parallel.nnodes), given_local(parallel));
    }
    start = parallel.node_rank * local;
  }
  if (hosts > 1 && is_equal && parallel.node_rank != 0 && start != parallel.node_rank * local) {
    return contradiction(given("--node-rank", parallel.node_rank), given_start(parallel));
  }
  start = std::clamp<int64_t>(start, 0, INT_MAX);
  parallel.data_parallel_start_rank = static_cast<int>(start);
  const int engines = parallel.data_parallel_size;
  if (start + local <= engines && (local > 0 || start == 0)) return {};
  return invalid_argument(given_start(parallel) + " and " + given_local(parallel) +
                          " name engines that there are not; " +
                          given("--data-parallel-size", engines) + " has the engines 0 to " +
                          std::to_string(engines - 1));
}

// Without --data-parallel-size-local a start rank is a --node-rank.
Status take_node_of_start(ParallelConfig& parallel) {
  const int start = parallel.data_parallel_start_rank;
  if (start < 0 || (start == 0 && parallel.nnodes == 1)) return {};
  if (parallel.nnodes == 1) {
    return invalid_argument(given_start(parallel) +
                            ": say how many engines this host has, with "
                            "--data-parallel-size-local");
  }
  FT_ASSIGN_OR_RETURN(const int local, equal_share(parallel));
  if (start >= parallel.data_parallel_size || start % local != 0) {
    return invalid_argument(given_start(parallel) + " is the first engine of no host: each has " +
                            std::to_string(local) + " of " +
                            std::to_string(parallel.data_parallel_size) + " engines");
  }
  if (parallel.node_rank != 0 && parallel.node_rank != start / local) {
    return contradiction(given("--node-rank", parallel.node_rank), given_start(parallel));
  }
  parallel.node_rank = start / local;
  return {};
}

// One host has all engines: nothing is said of others.
void forget_hosts(ParallelConfig& parallel) {
  parallel.data_parallel_size_local = parallel.data_parallel_start_rank = -1;
  parallel.data_parallel_hybrid_lb = parallel.data_parallel_external_lb = false;
}

// Engines that share no experts need not know of each other.
void leave_others(ParallelConfig& parallel) {
  parallel.data_parallel_size = parallel.data_parallel_size_local;
  parallel.data_parallel_size_local = -1;
}

}  // namespace

Result<ParallelConfig> with_hosts(ParallelConfig parallel) {
  take_servers(parallel);
  FT_RETURN_IF_ERROR(check_servers(parallel));
  // Numbers that cannot be are the next one's to refuse.
  if (parallel.nnodes < 1 || parallel.data_parallel_size < 1) return parallel;
  if (parallel.data_parallel_external_lb) FT_RETURN_IF_ERROR(take_only_engine(parallel));
  if (parallel.data_parallel_hybrid_lb) FT_RETURN_IF_ERROR(take_share_of_server(parallel));
  if (parallel.data_parallel_size_local < 0) {
    FT_RETURN_IF_ERROR(take_node_of_start(parallel));
    if (!parallel.headless || parallel.node_rank > 0) return parallel;
    return invalid_argument(
        "--headless is for hosts without a server; say which engines this one has, with "
        "--data-parallel-size-local and --data-parallel-start-rank, or --nnodes and --node-rank");
  }
  FT_RETURN_IF_ERROR(take_first_engine(parallel));
  const bool has_all = parallel.data_parallel_size_local == parallel.data_parallel_size;
  if (has_all && !parallel.headless) {
    if (parallel.nnodes > 1) {
      return contradiction(given("--nnodes", parallel.nnodes), given_local(parallel));
    }
    forget_hosts(parallel);
    return parallel;
  }
  parallel.nnodes = 1;
  parallel.node_rank = 0;
  if (has_own_server(parallel) && !parallel.enable_expert_parallel) leave_others(parallel);
  return parallel;
}

bool names_own_engines(const ParallelConfig& parallel) {
  return parallel.data_parallel_size_local >= 0;
}

bool serves_apart(const ParallelConfig& parallel) {
  return has_own_server(parallel) && !names_own_engines(parallel);
}

}  // namespace foretoken
