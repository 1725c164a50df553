#include "engine/start/host_flags.h"

#include <string>

namespace foretoken {
namespace {

// "--nnodes 2".
std::string given(const char* flag, const std::string& value) {
  return std::string(flag) + " " + value;
}
std::string given(const char* flag, int value) { return given(flag, std::to_string(value)); }

Status contradiction(const std::string& one, const std::string& other) {
  return invalid_argument(one + " and " + other + " contradict each other; leave one of them out");
}

Status take_number_of_hosts(ParallelConfig& parallel) {
  const int engines = parallel.data_parallel_size, local = parallel.data_parallel_size_local;
  if (local == 0) return {};
  const std::string flag = given("--data-parallel-size-local", local);
  if (local < 0 || local > engines || engines % local != 0) {
    return invalid_argument(flag + " does not divide " + given("--data-parallel-size", engines) +
                            ": hosts have equally many engines");
  }
  const int hosts = engines / local;
  if (parallel.nnodes > 1 && parallel.nnodes != hosts) {
    return contradiction(given("--nnodes", parallel.nnodes), flag);
  }
  parallel.nnodes = hosts;
  return {};
}

Status take_own_place(ParallelConfig& parallel) {
  const int start = parallel.data_parallel_start_rank;
  if (start < 0) return {};
  const std::string flag = given("--data-parallel-start-rank", start);
  const int local = parallel.data_parallel_size / parallel.nnodes;
  if (start >= parallel.data_parallel_size || local == 0 || start % local != 0) {
    return invalid_argument(flag + " is the first engine of no host: each has " +
                            std::to_string(local) + " of " +
                            std::to_string(parallel.data_parallel_size) + " engines");
  }
  if (parallel.node_rank != 0 && parallel.node_rank != start / local) {
    return contradiction(given("--node-rank", parallel.node_rank), flag);
  }
  parallel.node_rank = start / local;
  return {};
}

}  // namespace

Result<ParallelConfig> with_hosts(ParallelConfig parallel) {
  FT_RETURN_IF_ERROR(take_number_of_hosts(parallel));
  if (parallel.nnodes >= 1) FT_RETURN_IF_ERROR(take_own_place(parallel));
  if (parallel.headless && parallel.node_rank == 0) {
    return invalid_argument(
        "--headless is for hosts behind the first; say which one this is, with "
        "--data-parallel-size-local and --data-parallel-start-rank, or --nnodes and --node-rank");
  }
  return parallel;
}

}  // namespace foretoken
