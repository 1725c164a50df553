#include "device/cpu/control_groups.h"

#include <fstream>
#include <sstream>

namespace foretoken::cpu {
namespace {

namespace fs = std::filesystem;

bool names_controller(const std::string& controllers, const std::string& wanted) {
  std::stringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == wanted) return true;
  }
  return false;
}

void add_downwards(const fs::path& root, const fs::path& group, std::vector<fs::path>& folders) {
  fs::path folder = root;
  folders.push_back(folder);
  for (const fs::path& part : group.relative_path()) folders.push_back(folder /= part);
}

}  // namespace

std::vector<fs::path> group_folders(const std::string& controller, const fs::path& groups,
                                    const fs::path& root) {
  std::vector<fs::path> folders;
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      add_downwards(root, group, folders);
    } else if (names_controller(controllers, controller)) {
      add_downwards(root / controller, group, folders);
    }
  }
  return folders;
}

}  // namespace foretoken::cpu
