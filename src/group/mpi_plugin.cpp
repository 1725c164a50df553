#include "group/mpi_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

namespace foretoken::group {
namespace {

constexpr const char* kPluginName = "libforetoken_mpi.so";

std::vector<std::string> candidate_paths() {
  if (const char* path = std::getenv("FORETOKEN_MPI_PLUGIN")) return {path};
  std::vector<std::string> paths;
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (length > 0) {
    const std::string text(exe, static_cast<std::size_t>(length));
    const std::string folder = text.substr(0, text.rfind('/') + 1);
    paths.push_back(folder + kPluginName);
    paths.push_back(folder + "../lib/" + kPluginName);
  }
  paths.emplace_back(kPluginName);
  return paths;
}

// Stays open: MPI cannot be unloaded. Its own components look for its symbols globally.
void* open_library(std::string* reason) {
  for (const std::string& path : candidate_paths()) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    *reason = dlerror();
  }
  return nullptr;
}

}  // namespace

bool has_mpi_plugin() {
  std::string reason;
  return open_library(&reason) != nullptr;
}

Result<std::unique_ptr<RankLink>> open_mpi_link(std::shared_ptr<LinkShared> shared,
                                                std::span<const int> ranks) {
  std::string reason;
  void* library = open_library(&reason);
  if (library == nullptr) {
    return unsupported("--communicator mpi: cannot open the MPI plug-in (" + reason +
                       "); install libopenmpi-dev and build again, or use --communicator sockets");
  }
  const auto abi = reinterpret_cast<MpiAbiFn>(dlsym(library, "foretoken_mpi_abi"));
  const auto open = reinterpret_cast<MpiOpenFn>(dlsym(library, "foretoken_mpi_open"));
  if (abi == nullptr || open == nullptr || abi() != kMpiPluginAbi) {
    return unsupported("--communicator mpi: the MPI plug-in is of another version; rebuild both");
  }
  char error[512] = "";
  RankLink* link = open(&shared, ranks.data(), ranks.size(), error, sizeof error);
  if (link == nullptr) return invalid_argument(std::string("--communicator mpi: ") + error);
  return std::unique_ptr<RankLink>(link);
}

}  // namespace foretoken::group
