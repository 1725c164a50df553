#include "apps/options/models/default_model.h"

#include <cstdlib>
#include <filesystem>

#include "apps/options/models/bundled_roots.h"

namespace foretoken {

std::string bundled_model_name() { return "foretoken-7m"; }

std::string bundled_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::path& root : bundled_roots()) {
    const fs::path candidate = (root / path).lexically_normal();
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return {};
}

std::string bundled_model_folder(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const char* models = std::getenv("FORETOKEN_MODELS_DIR"); models != nullptr) {
    const fs::path folder = fs::path(models) / name;
    if (fs::exists(folder / "config.json", error)) return folder.string();
  }
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
