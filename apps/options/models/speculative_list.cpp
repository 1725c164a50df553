#include "apps/options/models/speculative_list.h"

#include <foretoken/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/options/models/speculative_fields.h"
#include "base/files/json_object.h"
#include "compat/compat.h"
#include "config/engine_drafter_fields.h"
#include "draft/parts/draft_list.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The row of an element's method; null where it is not known yet.
const DrafterEntry* entry_of(const json& member) {
  const auto method = member.find("method");
  if (method == member.end() || !method->is_string()) return nullptr;
  const Result<const DrafterEntry*> entry = find_drafter(method->get<std::string>());
  return entry.ok() ? entry.value() : nullptr;
}

bool has_field(const DrafterEntry& entry, const std::string& name) {
  return std::ranges::any_of(entry.fields,
                             [&](const MethodField& field) { return name == field.name; });
}

bool is_for(const std::string& name, const json& member) {
  const DrafterField* field = find_drafter_field(name);
  if (field != nullptr && (field->is_engine_wide || !field->is_of_files)) return true;
  const DrafterEntry* entry = entry_of(member);
  const bool of_methods = std::ranges::any_of(
      drafters(), [&](const DrafterEntry& each) { return has_field(each, name); });
  if (of_methods) return entry != nullptr && has_field(*entry, name);
  return entry == nullptr || entry->traits.reads_files;
}

// A field that no element reads goes to the last one, which refuses it by name.
void share(const std::string& name, const json& value, json& members) {
  const bool is_read =
      std::ranges::any_of(members, [&](const json& member) { return is_for(name, member); });
  for (json& member : members) {
    const bool takes = is_read ? is_for(name, member) : &member == &members.back();
    if (takes && !member.contains(name)) member[name] = value;
  }
}

constexpr const char* kListFlag = "--speculative-config";

std::string entry_name(size_t i, size_t num_entries) {
  return num_entries == 1 ? kListFlag : fmt::format("{} entry {}", kListFlag, i + 1);
}

bool says(const json& entry, const std::string& field) {
  const auto found = entry.find(field);
  return found != entry.end() && !found->is_null();
}

// Copies what one entry says about the whole engine to those that are silent.
Status share_engine_fields(json& list) {
  for (const DrafterField& row : drafter_fields()) {
    if (!row.is_engine_wide) continue;
    const char* field = row.name;
    const auto speaks = [&](const json& entry) { return says(entry, field); };
    const auto first = std::find_if(list.begin(), list.end(), speaks);
    if (first == list.end()) continue;
    const json value = (*first)[field];
    for (json& entry : list) {
      if (says(entry, field) && entry[field] != value) {
        return compat({.unlike_first = field});
      }
      entry[field] = value;
    }
  }
  return {};
}

// As the engine would, were no number of drafts missing.
Status check_lists(const std::vector<SpeculativeConfig>& drafters) {
  std::vector<ListedDrafter> list;
  for (const SpeculativeConfig& drafter : drafters) {
    const Result<const DrafterEntry*> entry = find_drafter(drafter.method);
    if (!entry.ok()) return {};
    list.push_back({entry.value()->name, entry.value()->traits});
    if (drafter.leads) continue;
    FT_RETURN_IF_ERROR(check_list("speculative config", list));
    list.clear();
  }
  return {};
}

}  // namespace

Result<json> members_of(const json& entry, const std::string& what) {
  const auto method = entry.find("method");
  if (method == entry.end() || (!method->is_array() && !method->is_string())) {
    return json::array({entry});
  }
  json elements = *method;
  if (method->is_string()) elements = names_of_list(method->get<std::string>());
  if (method->is_string() && elements.size() == 1) return json::array({entry});
  if (method->is_string() && std::ranges::count(elements, "") > 0) {
    return invalid_argument(
        fmt::format("{}: 'method' is {}, and a name is missing there; write "
                    "for example ngram+eagle3",
                    what, method->get<std::string>()));
  }
  json members = json::array();
  for (const json& element : elements) {
    if (!element.is_string() && !element.is_object()) {
      return invalid_argument(what +
                              ": 'method' must be a name or a list of names and JSON objects");
    }
    members.push_back(element.is_object() ? element : json{{"method", element}});
  }
  if (members.empty()) {
    return invalid_argument(what +
                            ": 'method' is an empty list; name a drafter, for example ngram");
  }
  for (const auto& [name, value] : entry.items()) {
    if (name != "method") share(name, value, members);
  }
  return members;
}

Result<json> parse_speculative_json(const std::string& text) {
  FT_ASSIGN_OR_RETURN(json value, parse_ordered_json(text, kListFlag));
  if (value.is_object() || value.is_array()) return value;
  return invalid_argument(std::string(kListFlag) +
                          ": must be a JSON object or a list of them, for example {\"method\": "
                          "\"ngram\", \"num_speculative_tokens\": 4}");
}

Result<std::vector<SpeculativeConfig>> read_speculative_json(json value,
                                                             const std::string& target) {
  const json list = value.is_array() ? std::move(value) : json::array({std::move(value)});
  if (list.empty() || list.size() > static_cast<size_t>(kMaxDrafters)) {
    return invalid_argument(fmt::format("{}: a list of drafters must have 1 to {} entries, not {}",
                                        kListFlag, kMaxDrafters, list.size()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_object()) continue;
    return invalid_argument(entry_name(i, list.size()) + ": must be a JSON object");
  }
  std::vector<bool> leads;
  json single = json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    FT_ASSIGN_OR_RETURN(json members, members_of(list[i], entry_name(i, list.size())));
    for (json& member : members) {
      leads.push_back(&member != &members.back());
      single.push_back(std::move(member));
    }
  }
  if (single.size() > static_cast<size_t>(kMaxDrafters)) {
    return invalid_argument(
        fmt::format("{}: {} drafters, with those of lists; an engine has at most {}", kListFlag,
                    single.size(), kMaxDrafters));
  }
  FT_RETURN_IF_ERROR(share_engine_fields(single));
  std::vector<SpeculativeConfig> drafters;
  Status missing;
  for (size_t i = 0; i < single.size(); ++i) {
    FT_ASSIGN_OR_RETURN(
        SpeculativeConfig drafter,
        read_speculative_fields(single[i], entry_name(i, single.size()), target, &missing));
    drafter.leads = leads[i];
    drafters.push_back(std::move(drafter));
  }
  if (!missing.ok()) FT_RETURN_IF_ERROR(check_lists(drafters));
  FT_RETURN_IF_ERROR(missing);
  return drafters;
}

Result<std::vector<SpeculativeConfig>> parse_speculative_config(const std::string& text,
                                                                const std::string& target) {
  FT_ASSIGN_OR_RETURN(json value, parse_speculative_json(text));
  return read_speculative_json(std::move(value), target);
}

}  // namespace foretoken
