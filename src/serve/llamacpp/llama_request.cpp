#include "serve/llamacpp/llama_request.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "config/sampling_fields.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/lax_values.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"
#include "serve/openai/openai_response.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Below 0: to the end of the context.
void read_length(JsonFields& fields, LlamaRequest* request, json* openai) {
  int length = -1;
  // The one that llama.cpp would take comes last.
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    fields.read(name, &length);
  }
  request->no_output = length == 0;
  (*openai)["max_tokens"] = length < 0 ? -1 : std::max(length, 1);
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

// What llama.cpp's sampler makes of a top_p out of range: 1 and above keep all, 0 and below the
// likeliest token.
void read_top_p(JsonFields& fields, json* openai) {
  std::optional<double> top_p;
  fields.read("top_p", &top_p);
  if (top_p && *top_p > 0) (*openai)["top_p"] = std::min(*top_p, 1.0);
  if (top_p && *top_p <= 0) (*openai)["top_k"] = 1;
}

// A number in the type of `value`, or the nearest in range.
template <class T>
void read_clamped(JsonFields& fields, const SamplingField& field, T value, json* openai) {
  if (!fields.has(field.name)) return fields.ignore({field.name});
  fields.read(field.name, &value);
  const auto low = static_cast<T>(field.range.low);
  (*openai)[field.name] = std::clamp(value, low, static_cast<T>(field.range.high));
}

// Values that mean something else in llama.cpp than in /v1/completions.
void read_values(JsonFields& fields, json* openai) {
  for (const SamplingField& field : sampling_fields()) {
    if (field.llama != LlamaReading::kClamped) continue;
    visit_sampling_member(field, SamplingParams(), [&](const auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, int>) read_clamped<int>(fields, field, value, openai);
      if constexpr (std::is_same_v<T, float>) read_clamped<double>(fields, field, value, openai);
    });
  }
  std::optional<int> top_k;
  fields.read("top_k", &top_k);
  if (top_k) (*openai)["top_k"] = std::max(*top_k, 0);
  read_top_p(fields, openai);
  const json* seed = fields.raw("seed");
  // Both are llama.cpp's "any".
  const std::optional<json> number = seed == nullptr ? std::nullopt : lax_integer(*seed);
  const bool any = number && (*number == -1 || *number == UINT32_MAX);
  if (seed != nullptr && !any) (*openai)["seed"] = *seed;
  std::vector<std::string> stop;
  fields.read("stop", &stop);
  std::erase(stop, "");
  if (!stop.empty()) (*openai)["stop"] = stop;
  copy_field(fields, "n_cmpl", "n", openai);
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
  copy_field(fields, "prompt", "prompt", &openai);
  copy_shared_fields(fields, kLlamaBody, kCompletionBody, &openai);
  read_length(fields, &request, &openai);
  read_values(fields, &openai);
  read_form(fields, &openai);
  fields.read("n_probs", &request.num_probs);
  if (request.num_probs < 0) fields.fail("'n_probs' must be at least 0");
  // OpenAI's name means the same.
  const json* logprobs = fields.raw("logprobs");
  const auto wanted = logprobs == nullptr ? std::nullopt : JsonFields::count_of(*logprobs);
  if (request.num_probs == 0 && wanted) {
    request.num_probs = static_cast<int>(std::min<uint64_t>(*wanted, INT32_MAX));
  }
  if (request.num_probs > 0) openai["logprobs"] = request.num_probs;
  fields.read("post_sampling_probs", &request.post_sampling_probs);
  fields.read("return_tokens", &request.return_tokens);
  fields.read("response_fields", &request.response_fields);
  // Labels, and what llama.cpp's clients send with their defaults.
  fields.ignore({"user", "stream_options", "samplers"});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.text,
                      parse_openai_request(OpenAiKind::kCompletion, openai, defaults));
  for (Request& one : request.text.requests) {
    one.sampling.processed_logprobs = request.post_sampling_probs && request.num_probs > 0;
  }
  add_warnings(warnings, &request.text.warnings);
  return request;
}

json llama_settings(const SamplingParams& sampling, bool stream) {
  json bias = json::array();
  for (const auto& [id, value] : sampling.logit_bias) {
    bias.push_back({{"bias", value}, {"token", id}});
  }
  const bool has_grammar = sampling.structured_outputs.has_value();
  json settings = {{"seed", sampling.seed.value_or(UINT32_MAX)}};
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    settings[field.llama_name != nullptr ? field.llama_name : field.name] =
        sampling_value(field, sampling);
  }
  settings["top_k"] = std::max(sampling.top_k, 0);
  settings.update({{"typical_p", 1.0},
                   {"repeat_last_n", -1},
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
                   {"samplers", {"penalties", "temperature", "min_p", "top_k", "top_p"}}});
  return settings;
}

json chosen_fields(const json& body, const std::vector<std::string>& paths) {
  if (paths.empty()) return body;
  json chosen = json::object();
  for (const std::string& path : paths) {
    const json* at = &body;
    for (size_t begin = 0; at != nullptr && begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      at = at->is_object() && at->contains(name) ? &(*at)[name] : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) chosen[path] = *at;
  }
  return chosen;
}

}  // namespace foretoken
