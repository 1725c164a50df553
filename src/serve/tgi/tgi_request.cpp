#include "serve/tgi/tgi_request.h"

#include <optional>
#include <utility>
#include <vector>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr int kDefaultLength = 100;

struct Renamed {
  const char* from;
  const char* to;
};

constexpr Renamed kFields[] = {{"frequency_penalty", "frequency_penalty"},
                               {"repetition_penalty", "repetition_penalty"},
                               {"temperature", "temperature"},
                               {"top_k", "top_k"},
                               {"top_p", "top_p"},
                               {"seed", "seed"},
                               {"stop", "stop"},
                               {"truncate", "truncate_prompt_tokens"},
                               {"adapter_id", "model"}};

// Draws are made where they are asked for or shaped.
void read_draws(JsonFields& fields, const json& params, json* openai) {
  bool sampled = params.empty();
  fields.read("do_sample", &sampled);
  std::optional<double> temperature;
  fields.read("temperature", &temperature);
  const bool shaped = (temperature && *temperature != 1) || fields.has("top_k") ||
                      fields.has("top_p") || fields.has("typical_p");
  const bool draws = sampled || shaped;
  if (!draws || !temperature) (*openai)["temperature"] = draws ? 1 : 0;
}

// None: 100 tokens; null: as many as fit.
void read_length(JsonFields& fields, const json& params, json* openai) {
  int length = kDefaultLength;
  fields.read("max_new_tokens", &length);
  if (length < 1) return fields.fail("'max_new_tokens' must be at least 1");
  const auto given = params.find("max_new_tokens");
  (*openai)["max_tokens"] = given != params.end() && given->is_null() ? -1 : length;
}

void read_form(JsonFields& fields, json* openai) {
  const json* grammar = fields.raw("grammar");
  if (grammar == nullptr) return;
  const std::string type =
      grammar->is_object() && grammar->contains("type") && grammar->at("type").is_string()
          ? grammar->at("type").get<std::string>()
          : "";
  const json value = grammar->is_object() ? grammar->value("value", json()) : json();
  if (type == "regex") {
    (*openai)["structured_outputs"] = {{"regex", value}};
  } else if (type == "json" && !value.is_null()) {
    (*openai)["structured_outputs"] = {{"json", value}};
  } else if (type == "json_schema" && value.is_object() && value.contains("schema")) {
    (*openai)["structured_outputs"] = {{"json", value.at("schema")}};
  } else {
    fields.fail(
        "'grammar' must be {\"type\": \"json\", \"value\": SCHEMA}, {\"type\": \"json_schema\", "
        "\"value\": {\"schema\": SCHEMA}} or {\"type\": \"regex\", \"value\": TEXT}");
  }
}

Status read_parameters(const json& params, const FieldNotes& notes, TgiRequest* request,
                       json* openai) {
  if (!params.is_object()) return invalid_argument("'parameters' must be an object");
  JsonFields fields(params, "'parameters'", notes);
  for (const Renamed& field : kFields) copy_field(fields, field.from, field.to, openai);
  read_draws(fields, params, openai);
  read_length(fields, params, openai);
  read_form(fields, openai);
  fields.read("details", &request->details);
  fields.read("decoder_input_details", &request->tells_prompt);
  fields.read("return_full_text", &request->full_text);
  fields.read("top_n_tokens", &request->num_top_tokens);
  if (request->num_top_tokens < 0) fields.fail("'top_n_tokens' must be at least 0");
  int best_of = 1;
  fields.read("best_of", &best_of);
  if (best_of > 1) fields.warn("'parameters': 'best_of' is not applied here");
  fields.pass_over({"typical_p", "watermark"});
  fields.check_unread();
  return fields.status();
}

}  // namespace

Result<TgiRequest> parse_tgi_request(const json& body, const OpenAiDefaults& defaults) {
  TgiRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  json openai = {{"top_p", 1}, {"top_k", 0}, {"min_p", 0}, {"repetition_penalty", 1}};
  const json* inputs = fields.raw("inputs");
  if (inputs == nullptr || !inputs->is_string()) {
    return invalid_argument("'inputs' must be the text to go on from");
  }
  request.prompt = inputs->get<std::string>();
  openai["prompt"] = request.prompt;
  openai["include_stop_str_in_output"] = true;
  const json* given = fields.raw("parameters");
  const json params = given == nullptr ? json::object() : *given;
  for (const char* name : {"model", "stream", "priority", "speculative"}) {
    copy_field(fields, name, name, &openai);
  }
  FT_RETURN_IF_ERROR(read_parameters(params, fields.notes(), &request, &openai));
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  bool streams = false;
  fields.read("stream", &streams);
  if (streams || request.details) openai["logprobs"] = request.num_top_tokens;
  if (request.details && request.tells_prompt && !streams) openai["prompt_logprobs"] = 0;
  FT_ASSIGN_OR_RETURN(request.text,
                      parse_openai_request(OpenAiKind::kCompletion, openai, defaults));
  add_warnings(warnings, &request.text.warnings);
  return request;
}

}  // namespace foretoken
