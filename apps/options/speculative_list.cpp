#include "apps/options/speculative_list.h"

#include <algorithm>
#include <vector>

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

}  // namespace

Result<json> members_of(const json& entry, const std::string& what) {
  const auto method = entry.find("method");
  if (method == entry.end() || (!method->is_array() && !method->is_string())) {
    return json::array({entry});
  }
  json elements = *method;
  if (method->is_string()) elements = names_of_list(method->get<std::string>());
  if (method->is_string() && elements.size() == 1) return json::array({entry});
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

}  // namespace foretoken
