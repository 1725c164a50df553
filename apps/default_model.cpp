#include "default_model.h"

#include <filesystem>

namespace foretoken {

std::string bundled_model_name() { return "foretoken-7m"; }

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

std::string bundled_model_folder(const std::string& name) {
  namespace fs = std::filesystem;
  const std::string config = bundled_path((fs::path("models") / name / "config.json").string());
  return config.empty() ? config : fs::path(config).parent_path().string();
}

std::string bundled_or_given(const std::string& model) {
  std::error_code error;
  const bool name = model.find('/') == std::string::npos && !std::filesystem::exists(model, error);
  const std::string bundled = name ? bundled_model_folder(model) : std::string();
  return bundled.empty() ? model : bundled;
}

std::string default_model() { return bundled_model_folder(bundled_model_name()); }

}  // namespace foretoken
