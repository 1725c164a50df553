#include "apps/options/models/bundled_roots.h"

namespace foretoken {

// The source tree or the installation that the executable belongs to, and the working directory.
std::vector<std::filesystem::path> bundled_roots() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {folder / ".." / "..", folder / ".." / "share" / "foretoken", fs::path(".")};
}

}  // namespace foretoken
