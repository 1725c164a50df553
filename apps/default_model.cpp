#include "default_model.h"

#include <filesystem>

namespace foretoken {

std::string bundled_model_name() { return "foretoken-3m"; }

std::string bundled_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& root :
       {folder / ".." / "..", folder / ".." / "share" / "foretoken", fs::path(".")}) {
    const fs::path candidate = (root / path).lexically_normal();
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return {};
}

std::string default_model() {
  const std::filesystem::path folder = std::filesystem::path("models") / bundled_model_name();
  const std::string config = bundled_path((folder / "config.json").string());
  return config.empty() ? config : std::filesystem::path(config).parent_path().string();
}

}  // namespace foretoken
