#include "apps/options/speculative_option.h"

#include "apps/flags/flag_table.h"
#include "apps/options/engine_choices.h"
#include "apps/options/models/speculative_list.h"
#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kFlag = "--speculative-config";

}  // namespace

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
  // Charts write values that nobody set as null, which vLLM takes for none.
  bool any = !config_json.empty() && config_json != "null";
  if (any) {
    FT_ASSIGN_OR_RETURN(value, parse_speculative_json(config_json));
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
  for (const Short& given : shorts) {
    if (given.value.is_null()) continue;
    any = true;
    if (value.is_array()) {
      return invalid_argument(std::string(given.flag) + " and a list in " + kFlag +
                              " contradict each other; put '" + given.field + "' into the list");
    }
    if (value.contains(given.field) && !value[given.field].is_null()) {
      return invalid_argument(std::string(given.flag) + " and '" + given.field + "' of " + kFlag +
                              " say the same; give one of them");
    }
    value[given.field] = given.value;
  }
  if (!any) return std::vector<SpeculativeConfig>();
  return read_speculative_json(std::move(value), target);
}

}  // namespace foretoken
