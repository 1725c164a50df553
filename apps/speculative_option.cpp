#include "speculative_option.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <vector>

#include "draft/registry.h"
#include "serve/field_names.h"
#include "serve/json_fields.h"

namespace foretoken {
namespace {

// Fields of vLLM's SpeculativeConfig beyond those read below.
constexpr const char* kLaterFields[] = {"attention_backend",
                                        "code_revision",
                                        "disable_by_batch_size",
                                        "disable_logprobs",
                                        "disable_mqa_scorer",
                                        "disable_padded_drafter_batch",
                                        "draft_load_config",
                                        "draft_sample_method",
                                        "draft_tensor_parallel_size",
                                        "enforce_eager",
                                        "max_model_len",
                                        "model",
                                        "moe_backend",
                                        "num_speculative_tokens_per_batch_size",
                                        "parallel_drafting",
                                        "posterior_alpha",
                                        "posterior_threshold",
                                        "quantization",
                                        "rejection_sample_method",
                                        "revision",
                                        "speculative_token_tree",
                                        "suffix_decoding_max_cached_requests",
                                        "suffix_decoding_max_spec_factor",
                                        "suffix_decoding_max_tree_depth",
                                        "suffix_decoding_min_token_prob",
                                        "synthetic_acceptance_length",
                                        "synthetic_acceptance_rate",
                                        "synthetic_acceptance_rates",
                                        "tensor_parallel_size",
                                        "token_tree",
                                        "use_heterogeneous_vocab"};

const std::vector<std::string> kFields = {"method", "num_speculative_tokens", "prompt_lookup_min",
                                          "prompt_lookup_max"};

void read_lookup(JsonFields& fields, const char* name, int* value) {
  fields.read(name, value);
  if (fields.has(name) && fields.status().ok() && *value < 1) {
    fields.fail("'" + std::string(name) + "' must be at least 1, not " + std::to_string(*value));
  }
}

// All names of drafters, aliases included.
std::vector<std::string> method_names(bool with_aliases) {
  std::vector<std::string> names;
  for (const DrafterEntry& entry : drafters()) {
    names.emplace_back(entry.name);
    std::istringstream aliases(with_aliases ? entry.aliases : "");
    for (std::string alias; aliases >> alias;) names.push_back(alias);
  }
  return names;
}

// Comes before the other fields: they may belong to a method that this build does not have.
void check_method(JsonFields& fields, const std::string& method) {
  if (method.empty() || !fields.status().ok()) return;
  const std::vector<std::string> known = method_names(true);
  if (std::find(known.begin(), known.end(), method) != known.end()) return;
  std::string list;
  for (const std::string& name : method_names(false)) list += (list.empty() ? "" : ", ") + name;
  fields.fail("method '" + method + "' is not available" +
              nearest_name_hint(method, known, "; use one of: " + list));
}

// vLLM also takes the method's name as the model.
void read_method(JsonFields& fields, SpeculativeConfig* config) {
  fields.read("method", &config->method);
  check_method(fields, config->method);
  std::string model;
  if (fields.has("model")) fields.read("model", &model);
  if (model.empty() || !fields.status().ok()) return;
  if (model != "ngram" && model != "[ngram]") {
    fields.fail("'model' (a draft model) is not supported yet; use {\"method\": \"ngram\"}");
  } else if (config->method.empty()) {
    config->method = "ngram";
  }
}

}  // namespace

Result<SpeculativeConfig> parse_speculative_config(const std::string& text) {
  const std::string what = "--speculative-config";
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json object, parse_ordered_json_object(text, what));
  SpeculativeConfig config;
  JsonFields fields(object, what);
  read_method(fields, &config);
  fields.read("num_speculative_tokens", &config.num_speculative_tokens);
  read_lookup(fields, "prompt_lookup_min", &config.prompt_lookup_min);
  read_lookup(fields, "prompt_lookup_max", &config.prompt_lookup_max);
  FT_RETURN_IF_ERROR(fields.status());
  if (const std::string name = fields.first_unread(); !name.empty()) {
    const bool later =
        std::find(std::begin(kLaterFields), std::end(kLaterFields), name) != std::end(kLaterFields);
    const std::string supported =
        "; supported are method, num_speculative_tokens, prompt_lookup_min and prompt_lookup_max";
    fields.fail("'" + name + (later ? "' is not supported yet" : "' is unknown") +
                (later ? supported : nearest_name_hint(name, kFields, supported)));
  } else if (config.method.empty()) {
    fields.fail(
        "'method' is missing; give for example {\"method\": \"ngram\", "
        "\"num_speculative_tokens\": 4}");
  } else if (!fields.has("num_speculative_tokens")) {
    fields.fail("'num_speculative_tokens' is missing; give for example 4");
  }
  FT_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace foretoken
