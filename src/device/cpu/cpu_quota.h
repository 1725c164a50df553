#pragma once
#include <filesystem>
#include <optional>

namespace foretoken::cpu {

// The cores' worth of time that control groups leave to this process, as containers limit it
// (`docker run --cpus 2.5`): the least of its group and of those above; nothing without a limit.
// Versions 1 and 2. `groups`: the text of /proc/self/cgroup; `root`: where the hierarchy is
// mounted.
std::optional<double> cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                const std::filesystem::path& root = "/sys/fs/cgroup");

// Physical cores that this process may use, as processor sets and the quota say; at least 1. What
// --cpu-threads 0 means.
int usable_cores();

}  // namespace foretoken::cpu
