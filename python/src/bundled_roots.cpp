#include "apps/options/models/bundled_roots.h"

#include <dlfcn.h>

namespace foretoken {

// The package folder, which the extension module lies in.
std::vector<std::filesystem::path> bundled_roots() {
  Dl_info module;
  static const char here = 0;
  if (dladdr(&here, &module) == 0 || module.dli_fname == nullptr) return {};
  return {std::filesystem::path(module.dli_fname).parent_path()};
}

}  // namespace foretoken
