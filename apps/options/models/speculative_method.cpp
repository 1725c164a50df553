#include "apps/options/models/speculative_method.h"

#include <filesystem>
#include <sstream>
#include <vector>

#include "apps/options/models/default_model.h"
#include "base/text/nearest_name.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

// Names and aliases, for the one that was meant; endings that stand for many are left out.
std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const DrafterEntry& entry : drafters()) {
    names.emplace_back(entry.name);
    std::istringstream aliases(entry.aliases);
    for (std::string alias; aliases >> alias;) {
      if (alias.front() != '*') names.push_back(alias);
    }
  }
  return names;
}

}  // namespace

Result<std::string> canonical_method(const std::string& name) {
  if (const Result<const DrafterEntry*> found = find_drafter(name); found.ok()) {
    return std::string(found.value()->name);
  }
  const std::string list = "; use one of: " + list_of_drafters();
  for (const UnbuiltDrafter& unbuilt : unbuilt_drafters()) {
    if (name != unbuilt.name) continue;
    return invalid_argument("method '" + name + "' " + unbuilt.reason + list);
  }
  return invalid_argument("method '" + name + "' is not available" +
                          nearest_name_hint(name, registered_names(), list));
}

std::string bundled_drafter(const std::string& method, const std::string& target) {
  std::error_code error;
  const std::string bundled = default_model();
  if (bundled.empty() || !std::filesystem::equivalent(target, bundled, error)) return {};
  const Result<const DrafterEntry*> entry = find_drafter(method);
  const bool is_named = entry.ok() && *entry.value()->bundled != '\0';
  return bundled_model_folder(bundled_model_name() + "-" +
                              (is_named ? entry.value()->bundled : method));
}

}  // namespace foretoken
