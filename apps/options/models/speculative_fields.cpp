#include "apps/options/models/speculative_fields.h"

#include <foretoken/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "apps/options/models/default_model.h"
#include "apps/options/models/speculative_method.h"
#include "base/log.h"
#include "base/text/nearest_name.h"
#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"
#include "draft/registry.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

void refuse_fields(JsonFields& fields) {
  for (const RefusedDrafterField& field : refused_drafter_fields()) {
    const json* value = fields.raw(field.name);
    if (value == nullptr || *value == json::parse(field.harmless)) continue;
    if (field.warned) {
      FT_LOG(warn, "'{}' of a speculative config has no effect: it {}", field.name, field.why);
      continue;
    }
    fields.fail("'" + std::string(field.name) + "' " + field.why);
  }
  for (const UnbuiltDrafter& method : unbuilt_drafters()) {
    std::istringstream names(method.fields);
    for (std::string name; names >> name;) {
      if (!fields.has(name.c_str())) continue;
      fields.fail("'" + name + "' belongs to method " + method.name + ", which " + method.reason +
                  "; remove it");
    }
  }
}

void read_text(JsonFields& fields, const DrafterField& field, std::string* value) {
  const char* name = field.name;
  const std::vector<std::string> known = field_choices(field.choices);
  fields.read(name, value);
  if (known.empty() || !fields.has(name) || !fields.status().ok()) return;
  if (std::find(known.begin(), known.end(), *value) != known.end()) return;
  std::string list;
  for (const std::string& entry : known) {
    list += (list.empty() ? "" : &entry == &known.back() ? " or " : ", ") + entry;
  }
  fields.fail("'" + std::string(name) + "' must be " + list + ", not '" + *value + "'" +
              nearest_name_hint(*value, known, ""));
}

// 0 stands for a number that is not given, so one that is given as 0 is told here; the engine
// judges all others.
void read_count(JsonFields& fields, const char* name, int* value) {
  fields.read(name, value);
  if (!fields.has(name) || !fields.status().ok() || *value != 0) return;
  fields.fail(fmt::format("'{}' must be at least 1, not 0", name));
}

// What the registry says of a method; null where it is not known yet.
const DrafterTraits* traits_of(const std::string& method) {
  const Result<const DrafterEntry*> entry = find_drafter(method);
  return entry.ok() ? &entry.value()->traits : nullptr;
}

// The method without files that `model` names; empty: none.
std::string method_named_as_model(const std::string& model) {
  const Result<const DrafterEntry*> entry = find_drafter(model);
  return entry.ok() && !entry.value()->traits.reads_files ? entry.value()->name : "";
}

// The method of which a field is given; empty: none.
std::string method_of_fields(const JsonFields& fields) {
  for (const DrafterEntry& entry : drafters()) {
    for (const MethodField& field : entry.fields) {
      if (fields.has(field.name)) return entry.name;
    }
  }
  return {};
}

// vLLM also takes a method without files as the name of the model. Without a method the engine
// looks into the model.
void read_method(JsonFields& fields, SpeculativeConfig* config) {
  fields.read("method", &config->method);
  fields.read("model", &config->model);
  if (!fields.status().ok()) return;
  const std::string named = method_named_as_model(config->model);
  if (config->method.empty()) config->method = named;
  if (config->method.empty() && config->model.empty()) config->method = method_of_fields(fields);
  if (config->method.empty() && !config->model.empty()) return;
  if (config->method.empty()) {
    return fields.fail(
        fmt::format("'method' (--spec-method) is missing; give for example {{\"method\": \"{}\", "
                    "\"num_speculative_tokens\": 4}}",
                    first_look_up().name));
  }
  const Result<std::string> method = canonical_method(config->method);
  if (!method.ok()) return fields.fail(method.status().message());
  config->method = method.value();
  if (config->method == named) config->model.clear();
}

// vLLM's word for a drafter that has one beside it that drafts all at once. Without a method the
// model's files say which of them it is.
void read_parallel(JsonFields& fields, SpeculativeConfig* config) {
  bool parallel = false;
  fields.read("parallel_drafting", &parallel);
  if (!fields.status().ok() || !parallel) return;
  const Result<const DrafterEntry*> entry = find_drafter(config->method);
  if (!entry.ok() || entry.value()->traits.drafts_at_once) return;
  const auto has_other = [](const DrafterEntry& other) { return *other.at_once != '\0'; };
  if (has_other(*entry.value())) {
    config->method = entry.value()->at_once;
  } else {
    fields.fail("'parallel_drafting' goes with method " + drafters_that(has_other) + ", not with " +
                config->method + "; remove it");
  }
}

// Those of the registry's rows, whichever the method is: the engine says whose they are.
void read_method_fields(JsonFields& fields, SpeculativeConfig* config) {
  for (const DrafterEntry& entry : drafters()) {
    for (const MethodField& field : entry.fields) {
      double value = 0;
      int count = 0;
      if (field.member != nullptr) {
        read_count(fields, field.name, &count);
      } else if (field.is_whole) {
        fields.read(field.name, &count);
      } else {
        fields.read(field.name, &value);
      }
      if (!fields.status().ok()) return;
      if (fields.has(field.name)) set_field(field, field.is_whole ? count : value, config);
    }
  }
}

constexpr const char* kNumTokens = "num_speculative_tokens";

void read_num_tokens(JsonFields& fields, SpeculativeConfig* config) {
  fields.read(kNumTokens, &config->num_speculative_tokens);
  if (!fields.has(kNumTokens) || config->num_speculative_tokens != 0) return;
  fields.fail(fmt::format("'{}' is 0; give 1 to {}, or leave speculation out", kNumTokens,
                          kMaxSpeculativeTokens));
}

// Some drafters' files tell the number; without a method the engine finds out whether these do.
bool lacks_num_tokens(const JsonFields& fields, const SpeculativeConfig& config) {
  const DrafterTraits* traits = traits_of(config.method);
  const bool may_count = traits != nullptr ? traits->counts_itself : config.method.empty();
  return !fields.has(kNumTokens) && !may_count;
}

bool is_int(const json& value) {
  return value.is_number_integer() && value >= std::numeric_limits<int>::min() &&
         value <= std::numeric_limits<int>::max();
}

// [[first, last, K], ...], as in vLLM.
void read_schedule(JsonFields& fields, const char* name, std::vector<DraftSchedule>* schedule) {
  constexpr const char* kWanted = "a list of [first, last, K] like [[1, 8, 4], [9, 64, 0]]";
  const json* list = fields.raw(name);
  if (list == nullptr) return;
  if (!list->is_array() || list->empty()) return fields.wrong_type(name, kWanted, *list);
  for (const json& entry : *list) {
    const bool whole =
        entry.is_array() && entry.size() == 3 && std::all_of(entry.begin(), entry.end(), is_int);
    if (!whole) return fields.wrong_type(name, kWanted, entry);
    schedule->push_back({entry[0].get<int>(), entry[1].get<int>(), entry[2].get<int>()});
  }
}

// What fields of a policy contradict.
void check_policy_fields(JsonFields& fields, SpeculativeConfig* config) {
  bool adaptive = false;
  fields.read("enable_adaptive_verification", &adaptive);
  const bool scheduled = !config->num_speculative_tokens_per_batch_size.empty();
  if (scheduled && fields.has("length_policy") && config->length_policy != "fixed") {
    return fields.fail("'num_speculative_tokens_per_batch_size' and 'length_policy' " +
                       config->length_policy + " contradict each other; remove one of them");
  }
  if (adaptive && (scheduled || config->length_policy != "adaptive")) {
    return fields.fail(
        "'enable_adaptive_verification' is what the length policy adaptive does; remove it or the "
        "other policy");
  }
  if (scheduled) config->length_policy = "fixed";
  bool local_argmax = false;
  fields.read("use_local_argmax_reduction", &local_argmax);
  if (local_argmax && config->draft_sample_method == "probabilistic") {
    fields.fail(
        "'use_local_argmax_reduction' is for greedy drafts; remove it or "
        "'draft_sample_method'");
  }
}

void read_member(JsonFields& fields, const DrafterField& field, int* value) {
  if (field.member == DrafterMember{&SpeculativeConfig::num_branches}) {
    fields.read(field.name, value);
    return;
  }
  read_count(fields, field.name, value);
}
void read_member(JsonFields& fields, const DrafterField& field, std::string* value) {
  read_text(fields, field, value);
}
void read_member(JsonFields& fields, const DrafterField& field, std::vector<DraftSchedule>* value) {
  read_schedule(fields, field.name, value);
}
template <class Value>
void read_member(JsonFields& fields, const DrafterField& field, Value* value) {
  fields.read(field.name, value);
}

// All rows of the table that have not been read before.
void read_rows(JsonFields& fields, SpeculativeConfig* config) {
  constexpr std::string_view kReadBefore[] = {"method", "model", "num_speculative_tokens"};
  for (const DrafterField& field : drafter_fields()) {
    if (std::ranges::find(kReadBefore, field.name) != std::end(kReadBefore)) continue;
    std::visit(
        [&](auto member) {
          if constexpr (std::is_same_v<decltype(member), std::monostate>) {
            bool asked = false;
            fields.read(field.name, &asked);
          } else {
            read_member(fields, field, &(config->*member));
          }
        },
        field.member);
  }
}

// The model: a bundled one by its name, or where none is named.
void find_model(JsonFields& fields, const std::string& target, SpeculativeConfig* config) {
  const DrafterTraits* traits = traits_of(config->method);
  if (traits != nullptr && !traits->reads_files) return;
  const bool named = !config->model.empty();
  if (named) config->model = bundled_or_given(config->model);
  if (named) return;
  if (fields.has("revision")) return fields.fail("'revision' needs 'model'");
  config->model = bundled_drafter(config->method, target);
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const DrafterField& field : drafter_fields()) names.emplace_back(field.name);
  for (const DrafterEntry& entry : drafters()) {
    for (const MethodField& field : entry.fields) names.emplace_back(field.name);
  }
  return names;
}

std::vector<std::string> refused_names() {
  std::vector<std::string> names;
  for (const RefusedDrafterField& field : refused_drafter_fields()) {
    names.emplace_back(field.name);
  }
  for (const UnbuiltDrafter& method : unbuilt_drafters()) {
    std::istringstream fields(method.fields);
    for (std::string name; fields >> name;) names.push_back(name);
  }
  return names;
}

// What is empty would count as left out, without a word.
void refuse_empty(const json& object, JsonFields& fields) {
  const std::vector<std::string> known = field_names();
  for (const auto& [name, value] : object.items()) {
    const bool is_empty = value == "" || (value.is_array() && value.empty());
    if (!is_empty || std::ranges::find(known, name) == known.end()) continue;
    fields.fail("'" + name + "' is empty; give a value, or leave it out");
  }
}

// An unknown name comes with the nearest one.
void refuse_unknown(const json& object, JsonFields& fields) {
  const std::vector<std::string> known = field_names();
  const std::vector<std::string> refused = refused_names();
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (std::ranges::find(refused, name) != refused.end()) continue;
    fields.fail("'" + name + "' is unknown" + nearest_name_hint(name, known, "; remove it"));
  }
}

}  // namespace

Result<SpeculativeConfig> read_speculative_fields(const json& object, const std::string& what,
                                                  const std::string& target, Status* missing) {
  SpeculativeConfig config;
  JsonFields fields(object, what);
  read_method(fields, &config);
  FT_RETURN_IF_ERROR(fields.status());
  read_parallel(fields, &config);
  FT_RETURN_IF_ERROR(fields.status());
  // Before what is missing: a slip in a name explains it.
  refuse_unknown(object, fields);
  refuse_fields(fields);
  read_num_tokens(fields, &config);
  read_method_fields(fields, &config);
  read_rows(fields, &config);
  refuse_empty(object, fields);
  check_policy_fields(fields, &config);
  FT_RETURN_IF_ERROR(fields.status());
  find_model(fields, target, &config);
  FT_RETURN_IF_ERROR(fields.status());
  if (missing->ok() && lacks_num_tokens(fields, config)) {
    *missing = invalid_argument(
        fmt::format("{}: '{}' (--spec-tokens) is missing; give 1 to {}, for example 4", what,
                    kNumTokens, kMaxSpeculativeTokens));
  }
  return config;
}

}  // namespace foretoken
