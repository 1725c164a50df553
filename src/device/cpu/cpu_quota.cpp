#include "device/cpu/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "device/cpu/control_groups.h"
#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

namespace fs = std::filesystem;
using Quota = std::optional<double>;

Quota least(Quota a, Quota b) { return a && b ? std::min(*a, *b) : a ? a : b; }

Quota ratio(double quota, double period) {
  return quota > 0 && period > 0 ? Quota(quota / period) : std::nullopt;
}

// Version 2: "QUOTA PERIOD", or "max PERIOD".
Quota read_max(const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period ? ratio(quota, period) : std::nullopt;
}

// Version 1: a quota of -1 is none.
Quota read_cfs(const fs::path& folder) {
  std::ifstream quota_file(folder / "cpu.cfs_quota_us"), period_file(folder / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? ratio(quota, period) : std::nullopt;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& groups, const fs::path& root) {
  Quota found;
  for (const fs::path& folder : group_folders("cpu", groups, root)) {
    found = least(found, least(read_max(folder), read_cfs(folder)));
  }
  return found;
}

// Threads beyond what a control group lets run would be stopped in the middle of every step, with
// the others waiting for them.
int usable_cores() {
  const int cores = num_physical_cores();
  const std::optional<double> quota = cpu_quota();
  return quota ? std::clamp(static_cast<int>(std::floor(*quota)), 1, cores) : cores;
}

}  // namespace foretoken::cpu
