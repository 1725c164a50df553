#include "serve/openapi/openapi_fields.h"

#include <algorithm>
#include <set>
#include <string>

#include "serve/openapi/openapi_rules.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Texts with sampling, under vLLM's names.
constexpr unsigned kOpenAi = kChatBody | kCompletionBody;
constexpr unsigned kTexts = kOpenAi | kMessagesBody | kCountBody | kResponsesBody | kTokenizeBody;
constexpr unsigned kChats = kChatBody | kTokenizeBody;
constexpr unsigned kAnthropic = kMessagesBody | kCountBody;
constexpr unsigned kOpenAiTexts = kOpenAi | kTokenizeBody;

struct Field {
  const char* name;
  unsigned bodies;
  const char* schema;  // every field may be null, too
};

constexpr const char* kIds = R"({"type":"array","items":{"$ref":"#/components/schemas/TokenId"}})";
constexpr const char* kText = R"({"type":"string"})";
constexpr const char* kFlag = R"({"type":"boolean"})";
constexpr const char* kObject = R"({"type":"object"})";
constexpr const char* kStop =
    R"({"anyOf":[{"type":"string","minLength":1},
        {"type":"array","items":{"type":"string","minLength":1},"maxItems":256}]})";
constexpr const char* kSeconds = R"({"type":"number","minimum":0,"maximum":1e9})";
constexpr const char* kPenalty = R"({"type":"number","minimum":-2,"maximum":2})";
constexpr const char* kCount = R"({"type":"integer","minimum":1,"maximum":2147483647})";
constexpr const char* kCountOrAll =
    R"({"anyOf":[{"type":"integer","minimum":1,"maximum":2147483647},
        {"enum":[-1,-2],"description":"As many as fit."}]})";
constexpr const char* kPrompt =
    R"({"anyOf":[{"type":"string","minLength":1},
        {"type":"array","minItems":1,"maxItems":4096,
         "items":{"anyOf":[{"type":"string","minLength":1},
           {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}}]}},
        {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}}]})";
constexpr const char* kNumLogprobs = R"({"$ref":"#/components/schemas/NumLogprobs"})";
constexpr const char* kIgnored = R"({"description":"Has no effect."})";

constexpr Field kFields[] = {
    {"model", kTexts | kEmbeddingBody, R"({"$ref":"#/components/schemas/ModelName"})"},
    {"messages", kChats | kEmbeddingBody,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/ChatMessage"}})"},
    {"messages", kAnthropic,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/AnthropicMessage"}})"},
    {"system", kAnthropic,
     R"({"anyOf":[{"type":"string"},
         {"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/components/schemas/TextBlock"}]}}]})"},
    {"prompt", kCompletionBody, kPrompt},
    {"input", kEmbeddingBody, kPrompt},
    {"input", kResponsesBody,
     R"({"anyOf":[{"type":"string"},
         {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/InputItem"}}]})"},
    {"instructions", kResponsesBody, kText},
    {"previous_response_id", kResponsesBody, kText},
    {"max_tokens", kOpenAiTexts, kCountOrAll},
    {"max_tokens", kAnthropic, kCountOrAll},
    {"max_completion_tokens", kChats, kCountOrAll},
    {"max_output_tokens", kResponsesBody, kCountOrAll},
    {"n_predict", kOpenAiTexts, kCountOrAll},
    {"min_tokens", kTexts,
     R"({"type":"integer","minimum":0,"maximum":2147483647,"description":"At most max_tokens."})"},
    {"n", kOpenAiTexts, R"({"type":"integer","minimum":1,"maximum":128})"},
    {"temperature", kTexts, R"({"type":"number","minimum":0,"maximum":1e6})"},
    {"top_p", kTexts, R"({"type":"number","exclusiveMinimum":0,"maximum":1})"},
    {"top_k", kTexts, R"({"type":"integer","minimum":-1,"maximum":2147483647})"},
    {"min_p", kTexts, R"({"type":"number","minimum":0,"maximum":1})"},
    {"presence_penalty", kTexts, kPenalty},
    {"frequency_penalty", kTexts, kPenalty},
    {"repetition_penalty", kTexts, R"({"type":"number","minimum":1e-6,"maximum":1e6})"},
    {"repeat_penalty", kTexts,
     R"({"type":"number","minimum":1e-6,"maximum":1e6,"description":"repetition_penalty"})"},
    {"seed", kTexts, R"({"type":"integer","minimum":-1,"maximum":18446744073709551615})"},
    {"stop", kOpenAiTexts | kResponsesBody, kStop},
    {"stop_sequences", kAnthropic, kStop},
    {"stop_token_ids", kTexts, kIds},
    {"include_stop_str_in_output", kTexts, kFlag},
    {"ignore_eos", kTexts, kFlag},
    {"detokenize", kOpenAiTexts,
     R"({"type":"boolean","description":"Stop strings need it true."})"},
    {"skip_special_tokens", kTexts, kFlag},
    {"spaces_between_special_tokens", kTexts, kFlag},
    {"logit_bias", kTexts,
     R"({"anyOf":[{"type":"object","maxProperties":1024,
         "propertyNames":{"pattern":"^(0|[1-9][0-9]{0,8})$"},
         "additionalProperties":{"type":"number","minimum":-100,"maximum":100}},
         {"type":"array","items":{"type":"array","minItems":2,"maxItems":2,
          "prefixItems":[{"$ref":"#/components/schemas/TokenId"},
            {"anyOf":[{"type":"number","minimum":-100,"maximum":100},{"const":false}]}]},
          "description":"false forbids the token"}]})"},
    {"bad_words", kTexts,
     R"({"anyOf":[{"type":"string","minLength":1},
         {"type":"array","items":{"type":"string","minLength":1},"maxItems":256}]})"},
    {"allowed_token_ids", kTexts,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}})"},
    {"logprobs", kChats, kFlag},
    {"top_logprobs", kChats | kResponsesBody, kNumLogprobs},
    {"logprobs", kCompletionBody, kNumLogprobs},
    {"prompt_logprobs", kOpenAiTexts, kNumLogprobs},
    {"echo", kCompletionBody, kFlag},
    {"stream", kTexts, kFlag},
    {"stream_options", kOpenAiTexts,
     R"({"type":"object","additionalProperties":false,
         "properties":{"include_usage":{"type":["boolean","null"]},
           "continuous_usage_stats":{"type":["boolean","null"]},"include_obfuscation":{}},
         "description":"Needs \"stream\": true."})"},
    {"stream_interval", kTexts,
     R"({"type":"integer","minimum":1,"maximum":2147483647,
         "description":"Tokens of a choice that a chunk waits for, after the first."})"},
    {"response_format", kOpenAiTexts,
     R"({"$ref":"#/components/schemas/ResponseFormat",
         "description":"Goes without structured_outputs and a tool_choice that forces a call."})"},
    {"structured_outputs", kTexts,
     R"({"$ref":"#/components/schemas/StructuredOutputs",
         "description":"Goes without response_format and a tool_choice that forces a call."})"},
    {"grammar", kTexts,
     R"({"type":"string","description":"GBNF or Lark; goes without other forms of the output."})"},
    {"json_schema", kTexts,
     R"({"type":"object","description":"Goes without other forms of the output."})"},
    {"prediction", kTexts & ~unsigned{kAnthropic | kResponsesBody},
     R"({"type":"object","required":["type","content"],"properties":{"type":{"const":"content"},
         "content":{"anyOf":[{"type":"string"},
           {"type":"array","items":{"anyOf":[{"type":"string"},
             {"$ref":"#/components/schemas/TextPart"}]}}]}},
         "description":"What the output will probably be; drafts come from it, the output is the same."})"},
    {"tools", kChats | kEmbeddingBody,
     R"({"type":"array","items":{"$ref":"#/components/schemas/Tool"}})"},
    {"tool_choice", kChats, R"({"$ref":"#/components/schemas/ToolChoice"})"},
    {"tools", kAnthropic,
     R"({"type":"array","items":{"$ref":"#/components/schemas/AnthropicTool"}})"},
    {"tool_choice", kAnthropic,
     R"({"type":"object","required":["type"],"properties":{
         "type":{"enum":["auto","any","tool","none"]},"name":{"type":["string","null"]},
         "disable_parallel_tool_use":{"type":["boolean","null"]}}})"},
    {"tools", kResponsesBody,
     R"({"type":"array","items":{"$ref":"#/components/schemas/FunctionTool"}})"},
    {"tool_choice", kResponsesBody,
     R"({"anyOf":[{"enum":["auto","none","required"]},
         {"type":"object","required":["type","name"],
          "properties":{"type":{"const":"function"},"name":{"type":"string"}}},
         {"type":"object","required":["type"],"description":"Has no effect.",
          "properties":{"type":{"type":"string","not":{"enum":["function","allowed_tools"]}}}}]})"},
    {"parallel_tool_calls", kChats | kResponsesBody, kFlag},
    {"thinking", kAnthropic,
     R"({"type":"object","required":["type"],"properties":{
         "type":{"enum":["enabled","disabled","adaptive"]},
           "budget_tokens":{"description":"Has no effect."}}})"},
    {"enable_thinking", kTexts & ~unsigned{kCompletionBody}, kFlag},
    {"output_config", kAnthropic,
     R"({"type":"object","additionalProperties":false,"properties":{"effort":{"type":["string","null"]},
         "format":{"anyOf":[{"$ref":"#/components/schemas/TextFormat"},{"type":"null"}]},
         "task_budget":{}}})"},
    {"output_format", kAnthropic, R"({"$ref":"#/components/schemas/TextFormat"})"},
    {"speed", kAnthropic, kIgnored},
    {"reasoning", kResponsesBody,
     R"({"type":"object","additionalProperties":false,"properties":{"effort":{"type":["string","null"]},
         "summary":{},"generate_summary":{}}})"},
    {"text", kResponsesBody,
     R"({"type":"object","additionalProperties":false,"properties":{
         "format":{"anyOf":[{"$ref":"#/components/schemas/TextFormat"},{"type":"null"}]},
         "verbosity":{}}})"},
    {"include", kResponsesBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
    {"truncation", kResponsesBody,
     R"({"enum":["disabled","auto"],"description":"auto has no effect."})"},
    {"store", kResponsesBody, kFlag},
    {"background", kResponsesBody, kFlag},
    {"include_reasoning", kTexts & ~unsigned{kCompletionBody}, kFlag},
    {"reasoning_effort", kChats | kEmbeddingBody,
     R"({"type":"string","description":"Given to the chat template; \"none\" turns thinking off."})"},
    {"documents", (kTexts & ~unsigned{kCompletionBody}) | kEmbeddingBody,
     R"({"type":"array","items":{"type":"object"}})"},
    {"chat_template_kwargs", (kTexts & ~unsigned{kCompletionBody}) | kEmbeddingBody, kObject},
    {"add_generation_prompt", kChats | kEmbeddingBody, kFlag},
    {"continue_final_message", kChats | kEmbeddingBody, kFlag},
    {"modalities", kChats,
     R"({"anyOf":[{"const":"text"},{"type":"array","items":{"const":"text"}}]})"},
    {"encoding_format", kEmbeddingBody, R"({"enum":["float","base64"]})"},
    {"normalize", kEmbeddingBody, kFlag},
    {"dimensions", kEmbeddingBody, R"({"$ref":"#/components/schemas/NumDimensions"})"},
    {"add_special_tokens", kOpenAiTexts | kEmbeddingBody, kFlag},
    {"truncate_prompt_tokens", kTexts | kEmbeddingBody,
     R"({"$ref":"#/components/schemas/NumKept"})"},
    {"return_token_ids", kOpenAiTexts,
     R"({"type":"boolean","description":"Answers have token_ids and prompt_token_ids; a stream has the latter first."})"},
    {"return_tokens_as_token_ids", kOpenAiTexts, kFlag},
    {"return_token_origins", kOpenAiTexts,
     R"({"type":"boolean","description":"Choices have token_origins: who proposed each token."})"},
    {"speculative", kTexts, R"({"$ref":"#/components/schemas/Speculative"})"},
    {"speculative", kEmbeddingBody,
     R"({"type":"object","additionalProperties":false,
         "properties":{"enabled":{"enum":[false,null]}},"description":"Vectors draft nothing."})"},
    {"priority", kTexts | kEmbeddingBody,
     R"({"type":"integer","minimum":-2147483648,"maximum":2147483647,
         "description":"Lower runs first; needs a server with --scheduling-policy priority."})"},
    {"cache_salt", kTexts | kEmbeddingBody, kText},
    {"queue_timeout_seconds", kTexts, kSeconds},
    {"timeout_seconds", kTexts, kSeconds},
    {"request_id", kTexts | kEmbeddingBody, kText},
    {"timings_per_token", kOpenAiTexts,
     R"({"type":"boolean","description":"Answers and chunks have llama.cpp's timings."})"},
    {"return_token_strs", kTokenizeBody, kFlag},
    {"user", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"metadata", kTexts | kEmbeddingBody, kIgnored},
    {"store", kOpenAiTexts | kEmbeddingBody, kIgnored},
    {"service_tier", kTexts | kEmbeddingBody, kIgnored},
    {"safety_identifier", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"prompt_cache_key", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"prompt_cache_retention", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"client_metadata", kResponsesBody, kIgnored},
    {"cache_prompt", kTexts, kIgnored},
    {"id_slot", kTexts, kIgnored},
    {"max_tool_calls", kResponsesBody, kIgnored},
    {"stream_options", kResponsesBody, kIgnored},
    {"session_id", kOpenAiTexts | kEmbeddingBody, kIgnored},
    {"verbosity", kOpenAiTexts | kEmbeddingBody, kIgnored},
    {"inference_geo", kAnthropic, kIgnored},
    {"context_management", kAnthropic, kIgnored},
    {"betas", kAnthropic, kIgnored},
    {"anthropic_version", kAnthropic, kIgnored},
    {"cache_control", kAnthropic, kIgnored},
};

json nullable(const char* text) {
  json schema = json::parse(text);
  if (schema == json{{"description", "Has no effect."}}) return schema;
  return {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
}

const char* required_field(OpenApiBody body) {
  switch (body) {
    case kCompletionBody:
      return "prompt";
    case kEmbeddingBody:
    case kResponsesBody:
      return "input";
    default:
      return "messages";
  }
}

}  // namespace

void allow_more_properties(json* schema) {
  if (schema->is_object()) {
    const auto more = schema->find("additionalProperties");
    if (more != schema->end() && *more == false) *more = true;
  }
  if (!schema->is_structured()) return;
  for (json& part : *schema) allow_more_properties(&part);
}

json openapi_body(OpenApiBody body, const OpenApiFacts& facts) {
  const std::string required = required_field(body);
  json properties = json::object();
  for (const Field& field : kFields) {
    if ((field.bodies & body) == 0) continue;
    const bool is_required = field.name == required ||
                             (body == kMessagesBody && field.name == std::string("max_tokens"));
    properties[field.name] = is_required ? json::parse(field.schema) : nullable(field.schema);
  }
  json schema = {{"type", "object"},
                 {"properties", std::move(properties)},
                 {"required", {required}},
                 {"additionalProperties", !facts.strict_fields}};
  if (!facts.strict_fields) allow_more_properties(&schema["properties"]);
  if (body == kMessagesBody) schema["required"].push_back("max_tokens");
  if (body == kEmbeddingBody) {
    // A text or a chat.
    schema.erase("required");
    schema["anyOf"] = {
        {{"required", {"input"}},
         {"properties",
          {{"input", {{"type", {"string", "array"}}}}, {"messages", {{"type", "null"}}}}}},
        {{"required", {"messages"}},
         {"properties", {{"messages", {{"type", "array"}}}, {"input", {{"type", "null"}}}}}}};
  }
  json rules = openapi_rules(body, facts);
  if (!rules.empty()) schema["allOf"] = std::move(rules);
  return schema;
}

}  // namespace foretoken
