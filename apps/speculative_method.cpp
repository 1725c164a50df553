#include "speculative_method.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "default_model.h"
#include "draft/registry.h"
#include "file_text.h"
#include "serve/field_names.h"

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

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string method_in(const std::string& text) {
  const std::string name = lower(text);
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  for (const char* other : {"dflash", "dspark", "medusa"}) {
    if (has(other)) return other;
  }
  if (has("eagle3") || has("eagle-3")) return "eagle3";
  if (has("eagle")) return "eagle";
  return has("mtp") || has("nextn") ? "mtp" : "";
}

// What config.json of a folder says: its kind of speculator or the name of its architecture.
std::string declared_method(const std::string& folder) {
  const Result<std::string> text =
      read_input_file((std::filesystem::path(folder) / "config.json").string());
  if (!text.ok()) return {};
  const nlohmann::json config = nlohmann::json::parse(text.value(), nullptr, false);
  if (!config.is_object()) return {};
  const nlohmann::json kind = config.value("speculators_model_type", nlohmann::json());
  if (kind.is_string()) return method_in(kind.get<std::string>());
  const nlohmann::json names = config.value("architectures", nlohmann::json());
  if (!names.is_array() || names.empty() || !names.front().is_string()) return {};
  return method_in(names.front().get<std::string>());
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

std::string guess_method(const std::string& model) {
  std::error_code error;
  if (std::filesystem::is_directory(model, error)) {
    if (const std::string declared = declared_method(model); !declared.empty()) return declared;
  }
  std::string trimmed = model;
  while (!trimmed.empty() && trimmed.back() == '/') trimmed.pop_back();
  const std::string named = method_in(std::filesystem::path(trimmed).filename().string());
  return named.empty() ? "draft_model" : named;
}

std::string bundled_drafter(const std::string& method, const std::string& target) {
  std::error_code error;
  const std::string bundled = default_model();
  if (bundled.empty() || !std::filesystem::equivalent(target, bundled, error)) return {};
  const std::string suffix = method == "draft_model" ? "draft" : method;
  return bundled_model_folder(bundled_model_name() + "-" + suffix);
}

}  // namespace foretoken
