#include "serve/llamacpp/llama_request.h"

#include <algorithm>
#include <cstdint>

#include "serve/fields/json_fields.h"
#include "serve/openai/openai_response.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Named and meant as in /v1/completions.
constexpr const char* kSame[] = {"model",
                                 "prompt",
                                 "top_p",
                                 "min_p",
                                 "presence_penalty",
                                 "frequency_penalty",
                                 "repetition_penalty",
                                 "min_tokens",
                                 "ignore_eos",
                                 "stop_token_ids",
                                 "bad_words",
                                 "allowed_token_ids",
                                 "add_special_tokens",
                                 "structured_outputs",
                                 "response_format",
                                 "speculative",
                                 "priority",
                                 "lora",
                                 "request_id",
                                 "stream",
                                 "stream_interval",
                                 "queue_timeout_seconds",
                                 "timeout_seconds"};

struct Foreign {
  const char* name;
  json neutral;  // asks for nothing
};

// Samplers and settings of llama.cpp that this engine does not have.
const std::vector<Foreign>& foreign_fields() {
  static const std::vector<Foreign> fields = {{"dynatemp_range", 0},
                                              {"typical_p", 1},
                                              {"top_n_sigma", -1},
                                              {"mirostat", 0},
                                              {"xtc_probability", 0},
                                              {"dry_multiplier", 0},
                                              {"n_keep", 0},
                                              {"t_max_predict_ms", 0},
                                              {"post_sampling_probs", false},
                                              {"return_progress", false},
                                              {"image_data", json::array()}};
  return fields;
}

void warn_of_foreign(JsonFields& fields, std::vector<std::string>* warnings) {
  for (const Foreign& field : foreign_fields()) {
    const json* value = fields.raw(field.name);
    if (value == nullptr || *value == field.neutral) continue;
    warnings->push_back("'" + std::string(field.name) + "' has no effect here");
  }
  const json* last = fields.raw("repeat_last_n");
  if (last != nullptr && *last != -1 && *last != 0 && fields.has("repeat_penalty")) {
    warnings->push_back("'repeat_last_n' has no effect here: penalties look at the whole text");
  }
  // Means nothing by itself, or says how llama.cpp keeps its cache.
  fields.ignore({"dynatemp_exponent",
                 "mirostat_tau",
                 "mirostat_eta",
                 "xtc_threshold",
                 "dry_base",
                 "dry_allowed_length",
                 "dry_penalty_last_n",
                 "dry_sequence_breakers",
                 "repeat_last_n",
                 "samplers",
                 "min_keep",
                 "id_slot",
                 "slot_id",
                 "n_discard",
                 "n_indent",
                 "n_cache_reuse",
                 "penalize_nl",
                 "tfs_z",
                 "sse_ping_interval",
                 "backend_sampling",
                 "user",
                 "stream_options"});
}

// [[id, bias], ...] where false forbids, or {"id": bias}.
void read_logit_bias(JsonFields& fields, json* openai) {
  const json* value = fields.raw("logit_bias");
  if (value == nullptr || value->is_object()) {
    if (value != nullptr) (*openai)["logit_bias"] = *value;
    return;
  }
  constexpr const char* kWanted = "a list of token ids and numbers like [[42, -1.5], [43, false]]";
  if (!value->is_array()) return fields.wrong_type("logit_bias", kWanted, *value);
  json bias = json::object();
  for (const json& pair : *value) {
    const bool fits = pair.is_array() && pair.size() == 2 && JsonFields::is_count(pair[0]) &&
                      (pair[1].is_number() || pair[1] == false);
    if (!fits) return fields.wrong_type("logit_bias", kWanted, pair);
    const std::string id = std::to_string(pair[0].get<int64_t>());
    bias[id] = pair[1] == false ? json(-100) : pair[1];
  }
  if (!bias.empty()) (*openai)["logit_bias"] = std::move(bias);
}

// -1 and -2: to the end of the context.
void read_length(JsonFields& fields, const OpenAiDefaults& defaults, LlamaRequest* request,
                 json* openai) {
  int length = -1;
  // The one that llama.cpp would take comes last.
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    fields.read(name, &length);
  }
  request->no_output = length == 0;
  if (length < 0) length = defaults.max_model_len;
  (*openai)["max_tokens"] = std::max(length, 1);
}

void read_form(JsonFields& fields, json* openai) {
  std::string grammar;
  fields.read("grammar", &grammar);
  const json* schema = fields.raw("json_schema");
  if (schema != nullptr && !grammar.empty()) {
    return fields.fail("'grammar' and 'json_schema' both force a form; remove one of the two");
  }
  if (schema != nullptr) {
    const bool any = schema->is_object() && schema->empty();
    (*openai)["structured_outputs"] = any ? json{{"json_object", true}} : json{{"json", *schema}};
  }
  if (!grammar.empty()) (*openai)["structured_outputs"] = {{"grammar", grammar}};
}

// Values that mean something else in llama.cpp than in /v1/completions.
void read_values(JsonFields& fields, json* openai) {
  std::optional<double> temperature;
  fields.read("temperature", &temperature);
  if (temperature) (*openai)["temperature"] = std::max(*temperature, 0.0);
  std::optional<int> top_k;
  fields.read("top_k", &top_k);
  if (top_k) (*openai)["top_k"] = std::max(*top_k, 0);
  std::optional<double> penalty;
  fields.read("repeat_penalty", &penalty);
  if (penalty) (*openai)["repetition_penalty"] = *penalty;
  const json* seed = fields.raw("seed");
  // Both are llama.cpp's "any".
  if (seed != nullptr && *seed != -1 && *seed != UINT32_MAX) (*openai)["seed"] = *seed;
  std::vector<std::string> stop;
  fields.read("stop", &stop);
  std::erase(stop, "");
  if (!stop.empty()) (*openai)["stop"] = stop;
  int num_choices = 1;
  fields.read("n", &num_choices);
  fields.read("n_cmpl", &num_choices);
  if (num_choices != 1) (*openai)["n"] = num_choices;
  bool cache_prompt = true;
  fields.read("cache_prompt", &cache_prompt);
  // Nobody else has this salt.
  if (!cache_prompt) (*openai)["cache_salt"] = make_openai_id("fresh");
}

}  // namespace

Result<LlamaRequest> parse_llama_request(const json& body, const OpenAiDefaults& defaults) {
  LlamaRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  json openai = json::object();
  for (const char* name : kSame) {
    if (const json* value = fields.raw(name); value != nullptr) openai[name] = *value;
  }
  read_length(fields, defaults, &request, &openai);
  read_values(fields, &openai);
  read_logit_bias(fields, &openai);
  read_form(fields, &openai);
  fields.read("n_probs", &request.num_probs);
  if (request.num_probs > 0) openai["logprobs"] = request.num_probs;
  fields.read("return_tokens", &request.return_tokens);
  fields.read("response_fields", &request.response_fields);
  bool timings = false;
  fields.read("timings_per_token", &timings);
  warn_of_foreign(fields, &warnings);
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.text,
                      parse_openai_request(OpenAiKind::kCompletion, openai, defaults));
  request.text.timings = timings;
  for (std::string& warning : warnings) request.text.warnings.push_back(std::move(warning));
  return request;
}

json llama_settings(const SamplingParams& sampling, bool stream) {
  json bias = json::array();
  for (const auto& [id, value] : sampling.logit_bias) {
    bias.push_back({{"bias", value}, {"token", id}});
  }
  const bool has_grammar = sampling.structured_outputs.has_value();
  return {{"seed", sampling.seed.value_or(UINT32_MAX)},
          {"temperature", sampling.temperature},
          {"top_k", std::max(sampling.top_k, 0)},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"typical_p", 1.0},
          {"repeat_last_n", -1},
          {"repeat_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"mirostat", 0},
          {"stop", sampling.stop},
          {"max_tokens", sampling.max_tokens},
          {"n_predict", sampling.max_tokens},
          {"n_keep", 0},
          {"ignore_eos", sampling.ignore_eos},
          {"stream", stream},
          {"logit_bias", std::move(bias)},
          {"n_probs", std::max(sampling.logprobs.value_or(0), 0)},
          {"grammar", has_grammar ? sampling.structured_outputs->grammar : ""},
          {"samplers", {"penalties", "temperature", "min_p", "top_k", "top_p"}}};
}

json chosen_fields(const json& body, const std::vector<std::string>& paths) {
  if (paths.empty()) return body;
  json chosen = json::object();
  for (const std::string& path : paths) {
    const json* at = &body;
    std::string name;
    for (size_t begin = 0; at != nullptr && begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      name = path.substr(begin, end - begin);
      at = at->is_object() && at->contains(name) ? &(*at)[name] : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) chosen[name] = *at;
  }
  return chosen;
}

}  // namespace foretoken
