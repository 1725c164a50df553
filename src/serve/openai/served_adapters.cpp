#include "serve/openai/served_adapters.h"

#include <algorithm>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status wrong_list() {
  return invalid_argument(
      "adapters are chosen by a list of {\"id\": 0, \"scale\": 1}; GET /lora-adapters tells the "
      "ids");
}

}  // namespace

Result<std::string> adapter_of_list(const json& list, const std::vector<std::string>& names) {
  if (!list.is_array()) return wrong_list();
  std::string chosen;
  for (const json& item : list) {
    if (!item.is_object()) return wrong_list();
    const json id = item.value("id", json()), scale = item.value("scale", json(1));
    if (!id.is_number_integer() || !scale.is_number()) return wrong_list();
    const auto index = id.get<int64_t>();
    if (index < 0 || index >= static_cast<int64_t>(names.size())) {
      return invalid_argument("no adapter has the id " + id.dump() + "; there are " +
                              std::to_string(names.size()));
    }
    if (scale == 0) continue;
    if (scale != 1) {
      return invalid_argument("adapter " + id.dump() + " is wanted with scale " + scale.dump() +
                              "; adapters are applied as they were trained, with scale 1, or not");
    }
    if (!chosen.empty()) {
      return invalid_argument("a request can have one adapter, not several at once");
    }
    chosen = names[static_cast<size_t>(index)];
  }
  return chosen;
}

std::vector<std::string> ServedAdapters::names() const {
  std::vector<std::string> names;
  for (const AdapterInfo& adapter : engine_.adapters()) names.push_back(adapter.name);
  return names;
}

std::string ServedAdapters::by_default() const {
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    name = default_;
  }
  if (name.empty()) return name;
  const std::vector<std::string> all = names();
  return std::ranges::count(all, name) > 0 ? name : "";
}

json ServedAdapters::list() const {
  const std::string chosen = by_default();
  json list = json::array();
  for (const AdapterInfo& adapter : engine_.adapters()) {
    list.push_back({{"id", list.size()},
                    {"path", adapter.path},
                    {"scale", adapter.name == chosen ? 1.0 : 0.0},
                    {"name", adapter.name}});
  }
  return list;
}

Status ServedAdapters::choose(const json& list) {
  FT_ASSIGN_OR_RETURN(const std::string chosen, adapter_of_list(list, names()));
  const std::lock_guard lock(mutex_);
  default_ = chosen;
  return {};
}

}  // namespace foretoken
