#include "apps/options/speculative_method.h"

#include <filesystem>
#include <sstream>
#include <vector>

#include "apps/options/default_model.h"
#include "draft/registry.h"
#include "serve/fields/field_names.h"

namespace foretoken {
namespace {

// Methods of vLLM and of its relatives that are no drafter of this build, and why.
struct OtherMethod {
  const char* name;
  const char* reason;
};

constexpr OtherMethod kOtherMethods[] = {
    {"suffix", "is not built yet"},
    {"medusa", "is not built yet"},
    {"mlp_speculator", "is not built yet"},
    {"dflash", "is not built yet"},
    {"dspark", "is not built yet"},
    {"xpress", "is not built yet"},
    {"extract_hidden_states", "drafts nothing and is not built"},
    {"custom_class", "loads Python code, which this engine has none of"},
};

struct Names {
  std::vector<std::string> all;  // aliases too
  std::string list;              // "ngram, draft_model, ..."
};

Names registered_names() {
  Names names;
  for (const DrafterEntry& entry : drafters()) {
    names.list += (names.list.empty() ? "" : ", ") + std::string(entry.name);
    names.all.emplace_back(entry.name);
    std::istringstream aliases(entry.aliases);
    for (std::string alias; aliases >> alias;) names.all.push_back(alias);
  }
  return names;
}

// The registry's own name for a name or alias; empty for others.
std::string registered(const std::string& name) {
  for (const DrafterEntry& entry : drafters()) {
    if (name == entry.name) return name;
    std::istringstream aliases(entry.aliases);
    for (std::string alias; aliases >> alias;) {
      if (alias == name) return entry.name;
    }
  }
  return {};
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Result<std::string> canonical_method(const std::string& name) {
  if (const std::string found = registered(name); !found.empty()) return found;
  if (ends_with(name, "_mtp") && !registered("mtp").empty()) return std::string("mtp");
  const Names names = registered_names();
  for (const OtherMethod& other : kOtherMethods) {
    if (name != other.name) continue;
    return invalid_argument("method '" + name + "' " + other.reason +
                            "; use one of: " + names.list);
  }
  return invalid_argument("method '" + name + "' is not available" +
                          nearest_name_hint(name, names.all, "; use one of: " + names.list));
}

std::string bundled_drafter(const std::string& method, const std::string& target) {
  std::error_code error;
  const std::string bundled = default_model();
  if (bundled.empty() || !std::filesystem::equivalent(target, bundled, error)) return {};
  const std::string suffix = method == "draft_model" ? "draft" : method;
  return bundled_model_folder(bundled_model_name() + "-" + suffix);
}

}  // namespace foretoken
