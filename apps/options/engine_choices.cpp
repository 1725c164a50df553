#include "apps/options/engine_choices.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "apps/options/models/bundled_roots.h"
#include "attention/backend.h"
#include "draft/registry.h"
#include "hub/resolve_model.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  return folders;
}

// "org/name" of the cache's folder models--org--name; empty for others.
std::string cached_model(const std::string& folder) {
  const std::string start = "models--";
  const size_t middle = folder.find("--", start.size());
  if (folder.rfind(start, 0) != 0 || middle == std::string::npos) return {};
  return folder.substr(start.size(), middle - start.size()) + "/" + folder.substr(middle + 2);
}

}  // namespace

std::vector<std::string> attention_backend_names() {
  std::vector<std::string> names;
  for (const AttentionBackend* backend : attention_backends()) {
    names.emplace_back(backend->traits().name);
  }
  return names;
}

std::vector<std::string> drafter_names() {
  std::vector<std::string> names;
  for (const DrafterEntry& entry : drafters()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> model_names() {
  std::set<std::string> names;
  std::vector<fs::path> shelves;
  if (const char* models = std::getenv("FORETOKEN_MODELS_DIR")) shelves.emplace_back(models);
  for (const fs::path& root : bundled_roots()) shelves.push_back(root / "models");
  std::error_code error;
  for (const fs::path& shelf : shelves) {
    for (const fs::path& folder : folders_in(shelf)) {
      if (fs::exists(folder / "config.json", error)) names.insert(folder.filename().string());
    }
  }
  for (const fs::path& folder : folders_in(hub_options_from_environment().cache_folder)) {
    const std::string name = cached_model(folder.filename().string());
    if (!name.empty()) names.insert(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace foretoken
