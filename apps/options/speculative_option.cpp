#include "apps/options/speculative_option.h"

#include <foretoken/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/flags/flag_table.h"
#include "apps/options/engine_choices.h"
#include "apps/options/speculative_fields.h"
#include "apps/options/speculative_list.h"
#include "base/json_object.h"
#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kFlag = "--speculative-config";

std::string entry_name(size_t i, size_t num_entries) {
  return num_entries == 1 ? kFlag : fmt::format("{} entry {}", kFlag, i + 1);
}

bool has(const json& object, const std::string& field) {
  const auto found = object.find(field);
  return found != object.end() && !found->is_null();
}

// Copies what one entry says about the whole engine to those that are silent.
Status share_engine_fields(json& list) {
  for (const DrafterField& row : drafter_fields()) {
    if (!row.is_engine_wide) continue;
    const char* field = row.name;
    const auto speaks = [&](const json& entry) { return has(entry, field); };
    const auto first = std::find_if(list.begin(), list.end(), speaks);
    if (first == list.end()) continue;
    const json value = (*first)[field];
    for (json& entry : list) {
      if (has(entry, field) && entry[field] != value) {
        return invalid_argument(fmt::format(
            "{}: '{}' holds for the whole engine, but entries differ; give it once", kFlag, field));
      }
      entry[field] = value;
    }
  }
  return {};
}

Result<std::vector<SpeculativeConfig>> read_list(json list, const std::string& target) {
  if (list.empty() || list.size() > static_cast<size_t>(kMaxDrafters)) {
    return invalid_argument(fmt::format("{}: a list of drafters must have 1 to {} entries, not {}",
                                        kFlag, kMaxDrafters, list.size()));
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
        fmt::format("{}: {} drafters, with those of lists; an engine has at most {}", kFlag,
                    single.size(), kMaxDrafters));
  }
  FT_RETURN_IF_ERROR(share_engine_fields(single));
  std::vector<SpeculativeConfig> drafters;
  for (size_t i = 0; i < single.size(); ++i) {
    FT_ASSIGN_OR_RETURN(SpeculativeConfig drafter,
                        read_speculative_fields(single[i], entry_name(i, single.size()), target));
    drafter.leads = leads[i];
    drafters.push_back(std::move(drafter));
  }
  return drafters;
}

Result<json> parse_config(const std::string& text) {
  FT_ASSIGN_OR_RETURN(json value, parse_ordered_json(text, kFlag));
  if (value.is_object() || value.is_array()) return value;
  return invalid_argument(std::string(kFlag) +
                          ": must be a JSON object or a list of them, for example {\"method\": "
                          "\"ngram\", \"num_speculative_tokens\": 4}");
}

json as_list(json value) { return value.is_array() ? value : json::array({std::move(value)}); }

}  // namespace

Result<std::vector<SpeculativeConfig>> parse_speculative_config(const std::string& text,
                                                                const std::string& target) {
  FT_ASSIGN_OR_RETURN(json value, parse_config(text));
  return read_list(as_list(std::move(value)), target);
}

void SpeculativeFlags::add_to(CLI::App& app) {
  const char* group = "Speculation";
  app.add_option("--speculative-config", config_json,
                 "Drafting as JSON, also -sc: {\"method\": \"ngram\", \"num_speculative_tokens\": "
                 "4}, or a list of such objects, of which requests choose; a part alone is "
                 "--speculative-config.method ngram (default: none)")
      ->group(group)
      ->type_name("JSON");
  app.add_option("--spec-method", method, "Its method, for short: as foretoken inspect lists them")
      ->group(group)
      ->type_name(choices_type(drafter_names()));
  app.add_option("--spec-model", model, "Its model: folder or Hub id of a draft model or head")
      ->group(group)
      ->type_name(kModelType);
  app.add_option("--spec-tokens", num_tokens, "Its num_speculative_tokens: drafts a step at most")
      ->group(group);
  app.add_option("--spec-length-policy", length_policy,
                 "Its length_policy: adaptive (as many drafts as pay, the default), fixed or off")
      ->group(group)
      ->type_name(choices_type(field_choices(find_drafter_field("length_policy")->choices)));
}

Result<std::vector<SpeculativeConfig>> SpeculativeFlags::resolve(const std::string& target) const {
  json value = json::object();
  if (!config_json.empty()) {
    FT_ASSIGN_OR_RETURN(value, parse_config(config_json));
  }
  struct Short {
    const char* flag;
    const char* field;
    json value;
  };
  const auto of_text = [](const std::string& given) {
    return given.empty() ? json() : json(given);
  };
  const Short shorts[] = {
      {"--spec-method", "method", of_text(method)},
      {"--spec-model", "model", of_text(model)},
      {"--spec-tokens", "num_speculative_tokens", num_tokens ? json(*num_tokens) : json()},
      {"--spec-length-policy", "length_policy", of_text(length_policy)}};
  bool any = !config_json.empty();
  for (const Short& given : shorts) {
    if (given.value.is_null()) continue;
    any = true;
    if (value.is_array()) {
      return invalid_argument(std::string(given.flag) + " and a list in " + kFlag +
                              " contradict each other; put '" + given.field + "' into the list");
    }
    if (has(value, given.field)) {
      return invalid_argument(std::string(given.flag) + " and '" + given.field + "' of " + kFlag +
                              " say the same; give one of them");
    }
    value[given.field] = given.value;
  }
  if (!any) return std::vector<SpeculativeConfig>();
  return read_list(as_list(std::move(value)), target);
}

}  // namespace foretoken
