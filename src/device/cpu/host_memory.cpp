#include "device/cpu/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "device/cpu/control_groups.h"

namespace foretoken::cpu {
namespace {

namespace fs = std::filesystem;

// Bytes by a line of /proc/meminfo, or by the system's count of pages.
int64_t memory_line(const char* wanted, int pages_name) {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  while (meminfo >> key >> kib) {
    if (key == wanted) return kib * 1024;
    meminfo.ignore(256, '\n');
  }
  return static_cast<int64_t>(sysconf(pages_name)) * sysconf(_SC_PAGESIZE);
}

// The number that a file holds; nothing where it is not there or says "max".
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The value of a line "name value" of a file; 0 where it is not there.
int64_t value_of(const fs::path& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

// Of one group: its limit, and that less what it uses, but for the cache of files. `prefix`: of the
// names in memory.stat.
std::optional<HostMemory> quota_of(const fs::path& folder, const char* limit_name,
                                   const char* used_name, const std::string& prefix) {
  const std::optional<int64_t> limit = number_in(folder / limit_name);
  if (!limit) return {};
  const int64_t used = number_in(folder / used_name).value_or(0);
  const int64_t cached = value_of(folder / "memory.stat", prefix + "inactive_file") +
                         value_of(folder / "memory.stat", prefix + "active_file");
  return HostMemory{*limit, std::max<int64_t>(*limit - (used - std::min(used, cached)), 0)};
}

}  // namespace

std::optional<HostMemory> memory_quota(const fs::path& groups, const fs::path& root) {
  std::optional<HostMemory> found;
  for (const fs::path& folder : group_folders("memory", groups, root)) {
    for (const auto& quota :
         {quota_of(folder, "memory.max", "memory.current", ""),
          quota_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")}) {
      if (!quota) continue;
      if (!found) found = *quota;
      found = {std::min(found->total, quota->total), std::min(found->free, quota->free)};
    }
  }
  return found;
}

HostMemory host_memory() {
  HostMemory memory = {memory_line("MemTotal:", _SC_PHYS_PAGES),
                       memory_line("MemAvailable:", _SC_AVPHYS_PAGES)};
  if (const std::optional<HostMemory> quota = memory_quota()) {
    memory.total = std::min(memory.total, quota->total);
    memory.free = std::min(memory.free, quota->free);
  }
  return memory;
}

}  // namespace foretoken::cpu
