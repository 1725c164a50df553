#include "device/cpu/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

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

// Of a group and all above it. Inside a container the group's own path may not be mounted; the root
// then is the container's group.
template <class Read>
Quota least_upwards(const fs::path& root, const fs::path& group, Read read) {
  Quota found = read(root);
  fs::path folder = root;
  for (const fs::path& part : group.relative_path()) {
    folder /= part;
    found = least(found, read(folder));
  }
  return found;
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::stringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& groups, const fs::path& root) {
  std::ifstream file(groups);
  Quota found;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      found = least(found, least_upwards(root, group, read_max));
    } else if (names(controllers, "cpu")) {
      found = least(found, least_upwards(root / "cpu", group, read_cfs));
    }
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
