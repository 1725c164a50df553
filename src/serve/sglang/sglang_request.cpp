#include "serve/sglang/sglang_request.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr int kDefaultLength = 128;

// Names that mean the same in 'sampling_params' and in a body of /v1/completions.
constexpr const char* kShared[] = {"temperature",
                                   "top_p",
                                   "top_k",
                                   "min_p",
                                   "frequency_penalty",
                                   "presence_penalty",
                                   "repetition_penalty",
                                   "stop",
                                   "stop_token_ids",
                                   "ignore_eos",
                                   "skip_special_tokens",
                                   "spaces_between_special_tokens",
                                   "n",
                                   "logit_bias"};

struct Renamed {
  const char* from;
  const char* to;
};

constexpr Renamed kRenamed[] = {{"min_new_tokens", "min_tokens"},
                                {"no_stop_trim", "include_stop_str_in_output"},
                                {"sampling_seed", "seed"}};

constexpr Renamed kForms[] = {{"json_schema", "json"},
                              {"regex", "regex"},
                              {"ebnf", "grammar"},
                              {"structural_tag", "structural_tag"}};

void read_form(JsonFields& fields, json* openai) {
  for (const Renamed& form : kForms) {
    const json* value = fields.raw(form.from);
    if (value == nullptr) continue;
    if (openai->contains("structured_outputs")) {
      return fields.fail(
          "'sampling_params' may have one of 'json_schema', 'regex', 'ebnf' and "
          "'structural_tag'");
    }
    // SGLang's word for any object.
    const bool any = *value == "$$ANY$$";
    (*openai)["structured_outputs"] = any ? json{{"json_object", true}} : json{{form.to, *value}};
  }
}

// One object for all prompts; a list of them must say the same of each.
Result<json> one_of_all(const json& params) {
  if (params.is_object()) return params;
  const bool is_list = params.is_array() && !params.empty() && params.front().is_object();
  const bool same = is_list && std::all_of(params.begin(), params.end(),
                                           [&](const json& one) { return one == params.front(); });
  if (same) return json(params.front());
  return invalid_argument(is_list ? "'sampling_params' must be the same for all prompts of a list; "
                                    "send those that differ one by one"
                                  : "'sampling_params' must be an object");
}

Status read_sampling(const json& params, const FieldNotes& notes, SglangRequest* request,
                     json* openai) {
  FT_ASSIGN_OR_RETURN(const json all, one_of_all(params));
  JsonFields fields(all, "'sampling_params'", notes);
  for (const char* name : kShared) copy_field(fields, name, name, openai);
  for (const Renamed& field : kRenamed) copy_field(fields, field.from, field.to, openai);
  int length = kDefaultLength;
  fields.read("max_new_tokens", &length);
  if (length < 0) fields.fail("'max_new_tokens' must be at least 0");
  request->no_output = length == 0;
  (*openai)["max_tokens"] = std::max(length, 1);
  read_form(fields, openai);
  fields.pass_over({"stop_regex", "custom_params"});
  fields.check_unread();
  return fields.status();
}

bool are_texts(const json& prompt) {
  const auto is_text = [](const json& one) { return one.is_string(); };
  return prompt.is_string() ||
         (prompt.is_array() && std::all_of(prompt.begin(), prompt.end(), is_text));
}

Status read_prompt(JsonFields& fields, SglangRequest* request, json* openai) {
  const json* text = fields.raw("text");
  const json* ids = fields.raw("input_ids");
  if ((text == nullptr) == (ids == nullptr)) {
    return invalid_argument("give 'text' or 'input_ids', one of the two");
  }
  const json& prompt = text != nullptr ? *text : *ids;
  if (text != nullptr && !are_texts(prompt)) {
    return invalid_argument("'text' must be a string or a list of strings");
  }
  if (ids != nullptr && !prompt.is_array()) {
    return invalid_argument("'input_ids' must be a list of ids or a list of such lists");
  }
  request->is_list =
      prompt.is_array() && !prompt.empty() && (text != nullptr || prompt.front().is_array());
  (*openai)["prompt"] = prompt;
  return {};
}

// The adapter, which a list must have in common.
Status read_adapter(JsonFields& fields, json* openai) {
  const json* path = fields.raw("lora_path");
  if (path == nullptr) return {};
  const json* name = path->is_array() && !path->empty() ? &path->front() : path;
  const bool same = !path->is_array() || std::all_of(path->begin(), path->end(),
                                                     [&](const json& one) { return one == *name; });
  if (!same) {
    return invalid_argument(
        "'lora_path' must be the same for all prompts of a list; send those that differ one by "
        "one");
  }
  if (name->is_null()) return {};
  if (!name->is_string()) return invalid_argument("'lora_path' must be an adapter's name");
  (*openai)["model"] = *name;
  return {};
}

void read_logprobs(JsonFields& fields, SglangRequest* request, json* openai) {
  fields.read("return_logprob", &request->return_logprob);
  fields.read("top_logprobs_num", &request->num_top_logprobs);
  fields.read("logprob_start_len", &request->logprob_start_len);
  fields.read("return_text_in_logprobs", &request->text_in_logprobs);
  if (request->num_top_logprobs < 0) fields.fail("'top_logprobs_num' must be at least 0");
  if (request->logprob_start_len < -1) fields.fail("'logprob_start_len' must be at least -1");
  if (!request->return_logprob) return;
  (*openai)["logprobs"] = request->num_top_logprobs;
  if (request->logprob_start_len >= 0) (*openai)["prompt_logprobs"] = request->num_top_logprobs;
}

}  // namespace

Result<SglangRequest> parse_sglang_request(const json& body, const OpenAiDefaults& defaults) {
  SglangRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  json openai = json::object();
  FT_RETURN_IF_ERROR(read_prompt(fields, &request, &openai));
  const json* params = fields.raw("sampling_params");
  FT_RETURN_IF_ERROR(read_sampling(params == nullptr ? json::object() : *params, fields.notes(),
                                   &request, &openai));
  read_logprobs(fields, &request, &openai);
  copy_field(fields, "extra_key", "cache_salt", &openai);
  for (const char* name : {"model", "stream", "priority", "speculative"}) {
    copy_field(fields, name, name, &openai);
  }
  FT_RETURN_IF_ERROR(read_adapter(fields, &openai));
  // Several ids are names of several prompts, which answers here have from their number.
  if (const json* id = fields.raw("rid"); id != nullptr && id->is_string()) {
    openai["request_id"] = *id;
  }
  constexpr const char* kTextsAlone = "give 'text' or 'input_ids'";
  fields.refuse({{"input_embeds", kTextsAlone},
                 {"image_data", kTextsAlone},
                 {"video_data", kTextsAlone},
                 {"audio_data", kTextsAlone}});
  fields.ignore(
      {"log_metrics", "modalities", "data_parallel_rank", "conversation_id", "background"});
  fields.pass_over({"token_ids_logprob", "return_hidden_states", "session_params",
                    "custom_logit_processor", "return_routed_experts"});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.text,
                      parse_openai_request(OpenAiKind::kCompletion, openai, defaults));
  add_warnings(warnings, &request.text.warnings);
  return request;
}

}  // namespace foretoken
