#include "apps/options/speculative_fields.h"

#include <foretoken/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>
#include <vector>

#include "apps/options/default_model.h"
#include "apps/options/speculative_method.h"
#include "draft/registry.h"
#include "serve/fields/field_names.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Of all methods; those of one alone stand in its row of the registry.
const std::vector<std::string> kFields = {"method",
                                          "model",
                                          "revision",
                                          "num_speculative_tokens",
                                          "parallel_drafting",
                                          "max_model_len",
                                          "draft_sample_method",
                                          "use_heterogeneous_vocab",
                                          "draft_tensor_parallel_size",
                                          "draft_vocab_size",
                                          "draft_vocab_file",
                                          "length_policy",
                                          "num_speculative_tokens_per_batch_size",
                                          "rejection_sample_method",
                                          "synthetic_acceptance_rates",
                                          "synthetic_acceptance_length",
                                          "enable_adaptive_verification",
                                          "disable_padded_drafter_batch",
                                          "disable_eagle_block_drop",
                                          "use_local_argmax_reduction"};

// A field of vLLM that this engine does not act on. `harmless` is a value that asks for nothing.
struct RefusedField {
  const char* name;
  json harmless;
  const char* reason;
};

constexpr const char* kFly = "belongs to the lossy rule fly, which changes the text; remove it";
constexpr const char* kTree = "asks for trees, which are not built yet; remove it";
constexpr const char* kGone = "is gone from vLLM too and has no effect; remove it";
constexpr const char* kTypical = "belongs to typical acceptance, which changes the text; remove it";
constexpr const char* kInternal = "is set by vLLM itself, not by its users; remove it";

const std::vector<RefusedField>& refused_fields() {
  static const std::vector<RefusedField> kRefused = {
      {"attention_backend", "auto",
       "is the engine's for all models; remove it and give --attention-backend"},
      {"code_revision", nullptr,
       "chooses Python code of a repository, which is never run; remove it"},
      {"disable_by_batch_size", nullptr,
       "is gone from vLLM too; remove it: the adaptive length policy stops drafting where it does "
       "not "
       "pay, or give num_speculative_tokens_per_batch_size"},
      {"disable_lookahead_block_hashes", false,
       "gives up exact draft entries of cached blocks, which cost nothing here; remove it"},
      {"disable_logprobs", nullptr, kGone},
      {"disable_mqa_scorer", nullptr, kGone},
      {"draft_lm_head_quantization", nullptr, "is not built yet; remove it"},
      {"draft_load_config", nullptr,
       "is not read: a drafter is loaded as the target is; remove it and give --load-format"},
      {"draft_model_config", nullptr, kInternal},
      {"draft_parallel_config", nullptr, kInternal},
      {"dspark_draft_topk", nullptr, "is not built yet; remove it"},
      {"enforce_eager", false,
       "is the engine's for all models; remove it and give --enforce-eager"},
      {"fly_entropy_threshold", nullptr, kFly},
      {"fly_entropy_top_k", nullptr, kFly},
      {"fly_window_size", nullptr, kFly},
      {"index_share_for_mtp_iteration", false,
       "belongs to sparse attention, which is not built yet; remove it"},
      {"kv_cache_dtype", "auto",
       "is not built yet: a drafter's cache is as --kv-cache-dtype says; remove it"},
      {"moe_backend", "auto",
       "chooses kernels for mixtures of experts, of which there is one kind; remove it"},
      {"posterior_alpha", nullptr, kTypical},
      {"posterior_threshold", nullptr, kTypical},
      {"quantization", nullptr,
       "is not built yet; name a draft model that is not quantized and remove it"},
      {"speculative_token_tree", nullptr, kTree},
      {"synthetic_acceptance_rate", nullptr,
       "is an old name; give a rate for each position in synthetic_acceptance_rates"},
      {"target_model_config", nullptr, kInternal},
      {"target_parallel_config", nullptr, kInternal},
      {"tensor_parallel_size", nullptr, "is no field of a drafter in vLLM either; remove it"},
      {"token_tree", nullptr, kTree},
  };
  return kRefused;
}

void refuse_fields(JsonFields& fields) {
  for (const RefusedField& field : refused_fields()) {
    const json* value = fields.raw(field.name);
    if (value == nullptr || *value == field.harmless) continue;
    fields.fail("'" + std::string(field.name) + "' " + field.reason);
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

void read_choice(JsonFields& fields, const char* name, const std::vector<std::string>& known,
                 std::string* value) {
  fields.read(name, value);
  if (!fields.has(name) || !fields.status().ok()) return;
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

// vLLM also takes the method ngram as the name of the model. Without a method the engine looks into
// the model.
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
        "'method' (--spec-method) is missing; give for example {\"method\": \"ngram\", "
        "\"num_speculative_tokens\": 4}");
  }
  const Result<std::string> method = canonical_method(config->method);
  if (!method.ok()) return fields.fail(method.status().message());
  config->method = method.value();
  if (config->method == named) config->model.clear();
}

// vLLM's word for a draft model that drafts behind mask tokens.
void read_parallel(JsonFields& fields, SpeculativeConfig* config) {
  bool parallel = false;
  fields.read("parallel_drafting", &parallel);
  if (!fields.status().ok() || !parallel) return;
  const std::string& method = config->method;
  if (method == "draft_model" || (method.empty() && !config->model.empty())) {
    config->method = "pard";
  } else if (method != "pard" && method != "dflash" && method != "dspark") {
    fields.fail("'parallel_drafting' with method " + method +
                " (P-EAGLE) is not built yet; remove it");
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

// Some drafters' files tell the number.
void read_num_tokens(JsonFields& fields, SpeculativeConfig* config) {
  constexpr const char* kName = "num_speculative_tokens";
  fields.read(kName, &config->num_speculative_tokens);
  if (!fields.status().ok() || config->num_speculative_tokens != 0) return;
  const DrafterTraits* traits = traits_of(config->method);
  if (!fields.has(kName) && traits != nullptr && traits->counts_itself) return;
  const std::string range = fmt::format("1 to {}", kMaxSpeculativeTokens);
  fields.fail(
      fields.has(kName)
          ? fmt::format("'{}' is 0; give {}, or leave speculation out", kName, range)
          : fmt::format("'{}' (--spec-tokens) is missing; give {}, for example 4", kName, range));
}

bool is_int(const json& value) {
  return value.is_number_integer() && value >= std::numeric_limits<int>::min() &&
         value <= std::numeric_limits<int>::max();
}

// [[first, last, K], ...], as in vLLM.
void read_schedule(JsonFields& fields, SpeculativeConfig* config) {
  constexpr const char* kName = "num_speculative_tokens_per_batch_size";
  constexpr const char* kWanted = "a list of [first, last, K] like [[1, 8, 4], [9, 64, 0]]";
  const json* list = fields.raw(kName);
  if (list == nullptr) return;
  if (!list->is_array() || list->empty()) return fields.wrong_type(kName, kWanted, *list);
  for (const json& entry : *list) {
    const bool whole =
        entry.is_array() && entry.size() == 3 && std::all_of(entry.begin(), entry.end(), is_int);
    if (!whole) return fields.wrong_type(kName, kWanted, entry);
    config->num_speculative_tokens_per_batch_size.push_back(
        {entry[0].get<int>(), entry[1].get<int>(), entry[2].get<int>()});
  }
}

void read_policy(JsonFields& fields, SpeculativeConfig* config) {
  read_choice(fields, "length_policy", {"adaptive", "fixed", "off"}, &config->length_policy);
  read_schedule(fields, config);
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
}

// Rules that are not built are known, so that the engine can say why.
void read_rule(JsonFields& fields, SpeculativeConfig* config) {
  read_choice(fields, "rejection_sample_method",
              {"coupled", "synthetic", "standard", "block", "fly"},
              &config->rejection_sample_method);
  fields.read("synthetic_acceptance_rates", &config->synthetic_acceptance_rates);
  fields.read("synthetic_acceptance_length", &config->synthetic_acceptance_length);
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

void read_drafter(JsonFields& fields, SpeculativeConfig* config) {
  fields.read("revision", &config->revision);
  read_count(fields, "max_model_len", &config->max_model_len);
  read_choice(fields, "draft_sample_method", {"greedy", "probabilistic"},
              &config->draft_sample_method);
  fields.read("use_heterogeneous_vocab", &config->use_heterogeneous_vocab);
  read_count(fields, "draft_tensor_parallel_size", &config->draft_tensor_parallel_size);
  read_count(fields, "draft_vocab_size", &config->draft_vocab_size);
  fields.read("draft_vocab_file", &config->draft_vocab_file);
  // What these ask for holds always: batches of drafters are never padded, no cached block is
  // dropped, and greedy drafts never write logits.
  bool granted = false;
  fields.read("disable_padded_drafter_batch", &granted);
  fields.read("disable_eagle_block_drop", &granted);
  bool local_argmax = false;
  fields.read("use_local_argmax_reduction", &local_argmax);
  if (local_argmax && config->draft_sample_method == "probabilistic") {
    fields.fail(
        "'use_local_argmax_reduction' is for greedy drafts; remove it or "
        "'draft_sample_method'");
  }
}

std::vector<std::string> field_names() {
  std::vector<std::string> names = kFields;
  for (const DrafterEntry& entry : drafters()) {
    for (const MethodField& field : entry.fields) names.emplace_back(field.name);
  }
  return names;
}

std::vector<std::string> refused_names() {
  std::vector<std::string> names;
  for (const RefusedField& field : refused_fields()) names.emplace_back(field.name);
  for (const UnbuiltDrafter& method : unbuilt_drafters()) {
    std::istringstream fields(method.fields);
    for (std::string name; fields >> name;) names.push_back(name);
  }
  return names;
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
                                                  const std::string& target) {
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
  read_drafter(fields, &config);
  read_policy(fields, &config);
  read_rule(fields, &config);
  FT_RETURN_IF_ERROR(fields.status());
  find_model(fields, target, &config);
  FT_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace foretoken
