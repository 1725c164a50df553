#include "serve/openai/served_adapters.h"

#include <algorithm>

#include "base/text/nearest_name.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/foreign_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status wrong_list() {
  return invalid_argument(
      "adapters are chosen by a list of {\"id\": 0, \"scale\": 1}; GET /lora-adapters tells the "
      "ids");
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string quoted_names(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 8;
  std::string all;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) {
    all += (all.empty() ? "'" : ", '") + names[i] + "'";
  }
  return names.size() > kMaxShown ? all + ", ..." : all;
}

bool is_served(const std::string& model, const std::vector<std::string>& names) {
  const bool any = names.empty() || holds(names, kAnyModel) || model.empty();
  return any || holds(names, model);
}

Status unknown_model(const std::string& model, const std::vector<std::string>& names) {
  return not_found("'model': the model `" + shown_name(model) +
                   "` does not exist; this server has " + quoted_names(names) +
                   nearest_name_hint(model, names, "") +
                   "; 'foretoken serve --served-model-name' gives it other names, and the name '*' "
                   "lets it answer to any");
}

bool may_name_adapter(const std::string& model, const OpenAiDefaults& defaults) {
  return model == "default" && defaults.adapters &&
         (defaults.adapters_come || !defaults.adapters().empty());
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

Status check_model_name(const std::string& model, const std::vector<std::string>& names) {
  if (is_served(model, names) || is_placeholder_model(model)) return {};
  return unknown_model(model, names);
}

Status check_model_name(const std::string& model, const OpenAiDefaults& defaults) {
  std::vector<std::string> names = defaults.model_names;
  const bool placeholder = is_placeholder_model(model) && !may_name_adapter(model, defaults);
  if (placeholder || is_served(model, names)) return {};
  if (defaults.adapters) {
    for (std::string& adapter : defaults.adapters()) names.push_back(std::move(adapter));
  }
  return is_served(model, names) ? Status() : unknown_model(model, names);
}

bool names_adapter(const std::string& model, const OpenAiDefaults& defaults) {
  return !holds(defaults.model_names, model) && defaults.adapters &&
         holds(defaults.adapters(), model);
}

Result<std::string> asked_adapter(const std::string& model, const json* lora,
                                  const OpenAiDefaults& defaults) {
  FT_RETURN_IF_ERROR(check_model_name(model, defaults));
  const bool of_engine = names_adapter(model, defaults);
  const bool has_list = lora != nullptr && !(lora->is_array() && lora->empty());
  if (has_list && !of_engine) {
    const auto names = defaults.adapters ? defaults.adapters() : std::vector<std::string>();
    Result<std::string> listed = adapter_of_list(*lora, names);
    if (listed.ok()) return listed;
    return invalid_argument("'lora': " + listed.status().message());
  }
  if (has_list) return invalid_argument("'lora' and 'model' both name an adapter; remove one");
  if (of_engine) return model;
  return model.empty() && defaults.default_adapter ? defaults.default_adapter() : std::string();
}

}  // namespace foretoken
