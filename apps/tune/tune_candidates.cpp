#include "apps/tune/tune_candidates.h"

#include <foretoken/limits.h>

#include <algorithm>
#include <fstream>

#include "apps/options/speculative_method.h"
#include "apps/options/speculative_option.h"
#include "draft/parts/draft_list.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kLookUp = "ngram";

bool reads_files(const TuneDrafter& drafter) {
  return declared_traits(drafter.config.method).reads_files;
}

Result<TuneDrafter> read_drafter(json entry, const std::string& target, int max_draft_tokens) {
  if (!entry.contains("num_speculative_tokens")) {
    entry["num_speculative_tokens"] = max_draft_tokens;
  }
  entry["length_policy"] = "fixed";
  FT_ASSIGN_OR_RETURN(const std::vector<SpeculativeConfig> read,
                      parse_speculative_config(entry.dump(), target));
  if (read.size() != 1) {
    return invalid_argument("--drafter: " + entry.dump() +
                            " is a list; name its drafters one by one, lists with ngram are "
                            "measured by themselves");
  }
  return TuneDrafter{std::move(entry), read.front()};
}

Result<json> entry_of(const std::string& given) {
  if (given.empty() || given.front() != '{') return json{{"model", given}};
  json entry = json::parse(given, nullptr, false);
  if (entry.is_object()) return entry;
  return invalid_argument("--drafter: '" + given +
                          "' is no JSON object; write {\"method\": ...} or a folder");
}

// Whether config.json in the folder tells of MTP modules; a Hub id has no folder here.
bool has_modules(const std::string& folder) {
  std::ifstream file(folder + "/config.json");
  const json config = json::parse(file, nullptr, false);
  if (!config.is_object()) return false;
  const json& text = config.contains("text_config") ? config["text_config"] : config;
  const auto count = text.find("num_nextn_predict_layers");
  return count != text.end() && count->is_number_integer() && *count > 0;
}

std::vector<json> entries_without_files(const std::string& target) {
  std::vector<json> entries;
  for (const DrafterEntry& drafter : drafters()) {
    const std::string name = drafter.name;
    const bool bundled = drafter.traits.reads_files && !bundled_drafter(name, target).empty();
    if (drafter.traits.looks_up || bundled || (name == "mtp" && has_modules(target))) {
      entries.push_back({{"method", name}});
    }
  }
  return entries;
}

}  // namespace

Result<std::vector<TuneDrafter>> tune_drafters(const std::string& target,
                                               const std::vector<std::string>& given,
                                               int max_draft_tokens) {
  std::vector<json> entries = entries_without_files(target);
  for (const std::string& one : given) {
    FT_ASSIGN_OR_RETURN(json entry, entry_of(one));
    entries.push_back(std::move(entry));
  }
  std::vector<TuneDrafter> all;
  for (json& entry : entries) {
    FT_ASSIGN_OR_RETURN(TuneDrafter drafter,
                        read_drafter(std::move(entry), target, max_draft_tokens));
    // Results go by methods; what the user names comes in place of what is found.
    std::erase_if(all, [&](const TuneDrafter& known) {
      return known.config.method == drafter.config.method;
    });
    all.push_back(std::move(drafter));
  }
  return all;
}

std::vector<std::vector<TuneDrafter>> tune_groups(const std::vector<TuneDrafter>& drafters) {
  const auto is = [](const std::string& method) {
    return [&method](const TuneDrafter& one) { return one.config.method == method; };
  };
  std::vector<std::vector<TuneDrafter>> groups;
  const auto look_up = std::find_if(drafters.begin(), drafters.end(), is(kLookUp));
  for (const TuneDrafter& drafter : drafters) {
    const std::string& method = drafter.config.method;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) {
      return one.size() < static_cast<size_t>(kMaxDrafters) &&
             std::none_of(one.begin(), one.end(), is(method));
    });
    if (group == groups.end()) {
      if (look_up != drafters.end() && method == kLookUp && !groups.empty()) continue;
      groups.emplace_back();
      group = groups.end() - 1;
      if (look_up != drafters.end() && method != kLookUp) group->push_back(*look_up);
    }
    group->push_back(drafter);
  }
  return groups;
}

std::vector<std::string> tune_methods(const std::vector<TuneDrafter>& group) {
  std::vector<std::string> methods;
  const bool has_look_up = group.front().config.method == kLookUp;
  for (const TuneDrafter& drafter : group) {
    methods.push_back(drafter.config.method);
    if (has_look_up && reads_files(drafter)) {
      methods.push_back(list_name({kLookUp, drafter.config.method}));
    }
  }
  return methods;
}

json tuned_entry(const std::vector<TuneDrafter>& drafters, const std::string& method,
                 int num_draft_tokens) {
  const std::vector<std::string> names = names_of_list(method);
  json entry;
  for (const TuneDrafter& drafter : drafters) {
    if (drafter.config.method == names.back()) entry = drafter.entry;
  }
  entry.erase("length_policy");
  entry["method"] = names.size() == 1 ? json(names.front()) : json(names);
  entry["num_speculative_tokens"] = num_draft_tokens;
  return entry;
}

}  // namespace foretoken
