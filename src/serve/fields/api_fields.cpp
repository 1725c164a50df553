#include "serve/fields/api_fields.h"

#include "config/sampling_fields.h"
#include "serve/fields/sampling_schema.h"

namespace foretoken {
namespace {

constexpr unsigned kChats = kChatBody | kTokenizeBody;
constexpr unsigned kNoCompletions = kVllmTexts & ~unsigned{kCompletionBody};

constexpr const char* kText = R"({"type":"string"})";
constexpr const char* kFlag = R"({"type":"boolean"})";
constexpr const char* kObject = R"({"type":"object"})";
constexpr const char* kSeconds = R"({"type":"number","minimum":0,"maximum":1e9})";
constexpr const char* kCountOrAll =
    R"({"anyOf":[{"type":"integer","minimum":1},
        {"enum":[-1,-2],"description":"As many as fit."}]})";
constexpr const char* kAnyInteger = R"({"type":"integer"})";
constexpr const char* kGrammar =
    R"({"type":"string","description":"GBNF or Lark; goes without other forms of the output."})";
constexpr const char* kJsonSchema =
    R"({"anyOf":[{"type":["object","boolean"]},{"type":"string","description":"The same as text"}],
        "description":"Goes without other forms of the output."})";
constexpr const char* kPrompt =
    R"({"anyOf":[{"type":"string","minLength":1},
        {"type":"array","minItems":1,"maxItems":4096,
         "items":{"anyOf":[{"type":"string","minLength":1},
           {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}}]}},
        {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}}]})";
constexpr const char* kNumLogprobs = R"({"$ref":"#/components/schemas/NumLogprobs"})";
constexpr const char* kIgnored = R"({"description":"Has no effect."})";

// One line of the tables here.
struct OwnField {
  const char* name;
  unsigned bodies;
  const char* schema;
};

// The document has these, then the fields of sampling, then the others.
constexpr OwnField kFirst[] = {
    {"model", kAllTexts | kEmbeddingBody, R"({"$ref":"#/components/schemas/ModelName"})"},
    {"messages", kChats | kEmbeddingBody,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/ChatMessage"}})"},
    {"messages", kAnthropicBodies,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/AnthropicMessage"}})"},
    {"system", kAnthropicBodies,
     R"({"anyOf":[{"type":"string"},
         {"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/components/schemas/TextBlock"}]}}]})"},
    {"prompt", kCompletionBody, kPrompt},
    {"input", kEmbeddingBody, kPrompt},
    {"input", kResponsesBody,
     R"({"anyOf":[{"type":"string"},
         {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/InputItem"}}]})"},
    {"instructions", kResponsesBody, kText},
    {"previous_response_id", kResponsesBody, kText},
    {"conversation", kResponsesBody,
     R"({"anyOf":[{"type":"string","minLength":1},
         {"type":"object","required":["id"],"properties":{"id":{"type":"string","minLength":1}}}],
         "description":"The conversation that the response goes on with; goes without previous_response_id."})"},
};

constexpr OwnField kOthers[] = {
    {"max_tokens", kLlamaBody, kAnyInteger},
    {"max_completion_tokens", kChats | kCompletionBody, kCountOrAll},
    {"max_output_tokens", kResponsesBody, kCountOrAll},
    {"n_predict", kOpenAiTexts, kCountOrAll},
    {"n_predict", kLlamaBody,
     R"({"type":"integer",
         "description":"Below 0: to the end of the context; max_tokens means the same."})"},
    {"top_k", kLlamaBody, kAnyInteger},
    {"top_p", kLlamaBody,
     R"({"type":"number","description":"0 and below: the likeliest token; above 1 as 1."})"},
    {"seed", kLlamaBody, kSeedSchema},
    {"stop", kLlamaBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"maxItems":256}]})"},
    {"stop_sequences", kAnthropicBodies, kTextsSchema},
    {"logprobs", kChats, kFlag},
    {"top_logprobs", kChats, kNumLogprobs},
    {"top_logprobs", kResponsesBody, kNumLogprobs},
    {"logprobs", kCompletionBody, kNumLogprobs},
    {"echo", kOpenAiTexts, kFlag},
    {"use_beam_search", kOpenAiTexts,
     R"({"type":"boolean",
         "description":"The n likeliest texts, by the model's own log-probabilities alone."})"},
    {"length_penalty", kOpenAiTexts,
     R"({"type":"number","description":"Of use_beam_search: the sum of log-probabilities is divided by the length to this power."})"},
    {"stream", kAllTexts, kFlag},
    {"stream_options", kOpenAiTexts,
     R"({"type":"object","additionalProperties":false,
         "properties":{"include_usage":{"type":["boolean","null"]},
           "continuous_usage_stats":{"type":["boolean","null"]},"include_obfuscation":{}},
         "description":"Needs \"stream\": true."})"},
    {"stream_interval", kAllTexts,
     R"({"type":"integer","minimum":1,
         "description":"Tokens of a choice that a chunk waits for, after the first."})"},
    {"response_format", kOpenAiTexts | kLlamaBody,
     R"({"$ref":"#/components/schemas/ResponseFormat",
         "description":"Goes without structured_outputs; of no effect on calls that a tool_choice forces."})"},
    {"structured_outputs", kAllTexts,
     R"({"$ref":"#/components/schemas/StructuredOutputs",
         "description":"Goes without response_format and a tool_choice that forces a call."})"},
    {"grammar", kVllmTexts, kGrammar},
    {"grammar", kLlamaBody, kGrammar},
    {"json_schema", kVllmTexts, kJsonSchema},
    {"json_schema", kLlamaBody, kJsonSchema},
    {"prediction", kVllmTexts,
     R"({"type":"object","required":["type","content"],"properties":{"type":{"const":"content"},
         "content":{"anyOf":[{"type":"string"},
           {"type":"array","items":{"anyOf":[{"type":"string"},
             {"$ref":"#/components/schemas/TextPart"}]}}]}},
         "description":"What the output will probably be; drafts come from it, the output is the same."})"},
    {"tools", kChats | kEmbeddingBody,
     R"({"type":"array","items":{"$ref":"#/components/schemas/Tool"}})"},
    {"tool_choice", kChats, R"({"$ref":"#/components/schemas/ToolChoice"})"},
    {"thread", kMessagesBody,
     R"({"anyOf":[{"type":"object","required":["type"],"properties":{"type":{"const":"create"},
           "previous_message_id":{"type":"null"}}},
         {"type":"object","required":["type","previous_message_id"],"properties":{
           "type":{"const":"continue"},"previous_message_id":{"type":"string","minLength":1}}}],
         "description":"The server keeps the conversation under the id of the answer; a request that goes on has new messages alone."})"},
    {"tools", kAnthropicBodies,
     R"({"type":"array","items":{"$ref":"#/components/schemas/AnthropicTool"}})"},
    {"tool_choice", kAnthropicBodies,
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
    {"thinking", kAnthropicBodies,
     R"({"type":"object","required":["type"],"properties":{
         "type":{"type":"string","minLength":1,"description":"disabled, or any other: enabled, adaptive, between_tools."},
           "budget_tokens":{"description":"Has no effect."}}})"},
    {"enable_thinking", kNoCompletions, kFlag},
    {"output_config", kAnthropicBodies,
     R"({"type":"object","additionalProperties":false,"properties":{"effort":{"anyOf":[{"type":["string","null"]},
           {"type":"object","properties":{"effort":{"type":["string","null"]}}}]},
         "format":{"anyOf":[{"$ref":"#/components/schemas/TextFormat"},{"type":"null"}]},
         "task_budget":{}}})"},
    {"output_format", kAnthropicBodies, R"({"$ref":"#/components/schemas/TextFormat"})"},
    {"speed", kAnthropicBodies, kIgnored},
    {"reasoning", kResponsesBody,
     R"({"type":"object","additionalProperties":false,"properties":{"effort":{"anyOf":[{"type":["string","null"]},
           {"type":"object","properties":{"effort":{"type":["string","null"]}}}]},
         "summary":{},"generate_summary":{},"context":{},"mode":{}}})"},
    {"text", kResponsesBody,
     R"({"type":"object","additionalProperties":false,"properties":{
         "format":{"anyOf":[{"$ref":"#/components/schemas/TextFormat"},{"type":"null"}]},
         "verbosity":{}}})"},
    {"include", kResponsesBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
    {"truncation", kResponsesBody,
     R"({"enum":["disabled","auto"],"description":"auto: the oldest messages are left out where not all fit."})"},
    {"store", kResponsesBody, kFlag},
    {"background", kResponsesBody, kFlag},
    {"include_reasoning", kNoCompletions, kFlag},
    {"reasoning_effort", kChats,
     R"({"anyOf":[{"type":"string"},{"type":"object","properties":{"effort":{"type":["string","null"]}}}],
         "description":"Given to the chat template; \"none\" turns thinking off."})"},
    {"reasoning_effort", kEmbeddingBody,
     R"({"type":"string","description":"Given to the chat template; \"none\" turns thinking off."})"},
    {"documents", kNoCompletions | kEmbeddingBody, R"({"type":"array","items":{"type":"object"}})"},
    {"chat_template_kwargs", kNoCompletions | kEmbeddingBody, kObject},
    {"add_generation_prompt", kChats | kEmbeddingBody, kFlag},
    {"continue_final_message", kChats | kEmbeddingBody, kFlag},
    {"modalities", kChats,
     R"({"anyOf":[{"const":"text"},{"type":"array","items":{"const":"text"}}]})"},
    {"encoding_format", kEmbeddingBody, R"({"enum":["float","base64","binary","ubinary"]})"},
    {"output_dtype", kEmbeddingBody,
     R"({"enum":["float","binary","ubinary"],"description":"Voyage's; the last two: a bit for each element, eight a number."})"},
    {"embed_dtype", kEmbeddingBody,
     R"({"enum":["float32","float16","bfloat16"],"description":"Of base64."})"},
    {"endianness", kEmbeddingBody,
     R"({"enum":["native","little","big"],"description":"Of base64; native: little."})"},
    {"normalize", kEmbeddingBody, kFlag},
    {"use_activation", kEmbeddingBody,
     R"({"type":"boolean","description":"vLLM's name of normalize."})"},
    {"dimensions", kEmbeddingBody, R"({"$ref":"#/components/schemas/NumDimensions"})"},
    {"prompt_name", kEmbeddingBody,
     R"({"type":"string","description":"One of the model's own prompts, which goes before the texts."})"},
    {"input_type", kEmbeddingBody,
     R"({"type":"string","description":"What the texts are for: query, document, ..., as the model's prompts tell them apart."})"},
    {"add_special_tokens", kOpenAiTexts | kEmbeddingBody | kLlamaBody, kFlag},
    {"truncate_prompt_tokens", kVllmTexts | kEmbeddingBody,
     R"({"$ref":"#/components/schemas/NumKept"})"},
    {"truncation_side", kVllmTexts | kEmbeddingBody,
     R"({"enum":["left","right"],"description":"The end that truncate_prompt_tokens cuts; embeddings: right unless said."})"},
    {"return_token_ids", kOpenAiTexts,
     R"({"type":"boolean","description":"Answers have token_ids and prompt_token_ids; a stream has the latter first."})"},
    {"return_tokens_as_token_ids", kOpenAiTexts, kFlag},
    {"return_token_origins", kOpenAiTexts,
     R"({"type":"boolean","description":"Choices have token_origins: who proposed each token."})"},
    {"speculative", kAllTexts, R"({"$ref":"#/components/schemas/Speculative"})"},
    {"speculative", kEmbeddingBody,
     R"({"type":"object","additionalProperties":false,
         "properties":{"enabled":{"enum":[false,null]}},"description":"Vectors draft nothing."})"},
    {"priority", kAllTexts | kEmbeddingBody,
     R"({"type":"integer",
         "description":"Lower runs first; needs a server with --scheduling-policy priority."})"},
    {"cache_salt", kVllmTexts | kEmbeddingBody, kText},
    {"flex_mask", kVllmTexts,
     R"({"type":"string","description":"What `request` is in the server's --flex-mask: a mask of q, kv and h."})"},
    {"flex_score", kVllmTexts,
     R"({"type":"string","description":"What `request` is in the server's --flex-score."})"},
    {"lora", kOpenAiTexts | kLlamaBody,
     R"({"type":"array","description":"Adapters of /lora-adapters: at most one scale is 1, all others are 0.",
         "items":{"type":"object","required":["id"],
           "properties":{"id":{"type":"integer","minimum":0},"scale":{"enum":[0,1]}}}})"},
    {"queue_timeout_seconds", kAllTexts, kSeconds},
    {"timeout_seconds", kAllTexts, kSeconds},
    {"request_id", kAllTexts | kEmbeddingBody, kText},
    {"timings_per_token", kOpenAiTexts | kLlamaBody,
     R"({"type":"boolean","description":"Answers and chunks have llama.cpp's timings."})"},
    {"return_token_strs", kTokenizeBody, kFlag},
    {"user", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"metadata", kVllmTexts | kEmbeddingBody, kIgnored},
    {"store", kOpenAiTexts | kEmbeddingBody, kIgnored},
    {"service_tier", kVllmTexts | kEmbeddingBody, kIgnored},
    {"safety_identifier", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"prompt_cache_key", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"prompt_cache_options", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"prompt_cache_retention", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"client_metadata", kResponsesBody, kIgnored},
    {"cache_prompt", kVllmTexts, kIgnored},
    {"cache_prompt", kLlamaBody, kFlag},
    {"n_probs", kLlamaBody, R"({"$ref":"#/components/schemas/NumProbs"})"},
    {"post_sampling_probs", kLlamaBody,
     R"({"type":"boolean","description":"n_probs tokens are told with their probabilities after the samplers."})"},
    {"return_tokens", kLlamaBody, kFlag},
    {"response_fields", kLlamaBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],
         "description":"Paths of the fields that the answer has: \"timings/prompt_n\""})"},
    {"mirostat", kAllTexts, kIgnored},
    {"typical_p", kAllTexts, kIgnored},
    {"samplers", kLlamaBody, kIgnored},
    {"repeat_last_n", kAllTexts, kIgnored},
    {"id_slot", kAllTexts, kIgnored},
    {"max_tool_calls", kResponsesBody, kIgnored},
    {"stream_options", kResponsesBody, kIgnored},
    {"session_id", kOpenAiTexts | kEmbeddingBody | kResponsesBody, kIgnored},
    {"verbosity", kOpenAiTexts | kEmbeddingBody, kIgnored},
    {"inference_geo", kAnthropicBodies, kIgnored},
    {"context_management", kAnthropicBodies, kIgnored},
    {"betas", kAnthropicBodies, kIgnored},
    {"diagnostics", kAnthropicBodies, kIgnored},
    {"user_profile_id", kAnthropicBodies, kIgnored},
    {"workspace_id", kAnthropicBodies, kIgnored},
    {"billing_policy", kAnthropicBodies, kIgnored},
    {"fallback_credit_token", kAnthropicBodies, kIgnored},
    {"compaction", kCountBody, kIgnored},
    {"anthropic_version", kAnthropicBodies, kIgnored},
    {"cache_control", kAnthropicBodies, kIgnored},
};

// A field of the table has an entry for all APIs that take it alike, one for llama.cpp's routes
// where those clamp it, and one for its other name.
void add_sampling(const SamplingField& field, std::vector<ApiField>* fields) {
  const bool shared = field.llama == LlamaReading::kSame;
  const unsigned alike = shared ? field.bodies : field.bodies & ~unsigned{kLlamaBody};
  if (alike != 0) fields->push_back({field.name, alike, sampling_schema(field).dump()});
  if (field.llama == LlamaReading::kClamped) {
    fields->push_back({field.name, kLlamaBody, clamped_schema(field).dump()});
  }
  if (field.llama_name == nullptr) return;
  nlohmann::ordered_json schema = sampling_schema(field);
  schema["description"] = field.name;
  fields->push_back({field.llama_name, field.bodies, schema.dump()});
}

std::vector<ApiField> all_fields() {
  std::vector<ApiField> fields;
  const auto add = [&fields](const OwnField& own) {
    // What has no effect stands here until the table has it.
    if (own.schema == kIgnored && find_sampling_field(own.name) != nullptr) return;
    fields.push_back({own.name, own.bodies, own.schema});
  };
  for (const OwnField& own : kFirst) add(own);
  for (const SamplingField& field : sampling_fields()) add_sampling(field, &fields);
  for (const OwnField& own : kOthers) add(own);
  return fields;
}

}  // namespace

std::span<const ApiField> api_fields() {
  static const std::vector<ApiField> fields = all_fields();
  return fields;
}

std::vector<const char*> shared_fields(ApiBody from, ApiBody to) {
  std::vector<const char*> names;
  for (const ApiField& field : api_fields()) {
    if ((field.bodies & from) != 0 && (field.bodies & to) != 0) names.push_back(field.name);
  }
  return names;
}

}  // namespace foretoken
