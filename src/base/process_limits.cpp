#include "base/process_limits.h"

#include <sys/resource.h>

namespace foretoken {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kLeastStack = 1024 * kKiB;
constexpr uint64_t kLeastMemory = 512 * 1024 * kKiB;

uint64_t bytes_of(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? 0 : static_cast<uint64_t>(limit.rlim_cur);
}

std::string fault(const char* what, const char* command, uint64_t bytes, uint64_t least) {
  return std::string(what) + " may have only " + std::to_string(bytes / kKiB) + " KiB (" + command +
         " " + std::to_string(bytes / kKiB) + "); raise it to " + std::to_string(least / kKiB) +
         " at least";
}

}  // namespace

ProcessLimits process_limits() { return {bytes_of(RLIMIT_STACK), bytes_of(RLIMIT_AS)}; }

std::string limit_fault(const ProcessLimits& limits) {
  if (limits.stack_bytes != 0 && limits.stack_bytes < kLeastStack) {
    return fault("the stack of a thread", "ulimit -s", limits.stack_bytes, kLeastStack);
  }
  if (limits.memory_bytes != 0 && limits.memory_bytes < kLeastMemory) {
    return fault("the process's memory", "ulimit -v", limits.memory_bytes, kLeastMemory);
  }
  return {};
}

}  // namespace foretoken
