#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace foretoken::cpu {

// Bytes of the host's memory.
struct HostMemory {
  int64_t total;
  int64_t free;  // that can be taken without swapping, the cache of files among it
};

// What control groups leave to this process, as containers limit it (`docker run --memory 8g`): the
// least of its group and of those above; nothing without a limit. `groups` and `root` as in
// device/cpu/control_groups.h.
std::optional<HostMemory> memory_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                       const std::filesystem::path& root = "/sys/fs/cgroup");

// What this process may use: of the host's memory as far as memory_quota goes.
HostMemory host_memory();

}  // namespace foretoken::cpu
