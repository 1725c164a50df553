#include "serve/fields/api_fields.h"

namespace foretoken {
namespace {

// Texts with sampling, under vLLM's names.
constexpr unsigned kOpenAi = kChatBody | kCompletionBody;
constexpr unsigned kTexts = kOpenAi | kMessagesBody | kCountBody | kResponsesBody | kTokenizeBody;
constexpr unsigned kChats = kChatBody | kTokenizeBody;
constexpr unsigned kAnthropic = kMessagesBody | kCountBody;
constexpr unsigned kOpenAiTexts = kOpenAi | kTokenizeBody;
constexpr unsigned kAll = kTexts | kLlamaBody;

constexpr const char* kIds = R"({"type":"array","items":{"$ref":"#/components/schemas/TokenId"}})";
constexpr const char* kText = R"({"type":"string"})";
constexpr const char* kFlag = R"({"type":"boolean"})";
constexpr const char* kObject = R"({"type":"object"})";
constexpr const char* kStop =
    R"({"anyOf":[{"type":"string","minLength":1},
        {"type":"array","items":{"type":"string","minLength":1},"maxItems":256}]})";
constexpr const char* kSeconds = R"({"type":"number","minimum":0,"maximum":1e9})";
constexpr const char* kPenalty = R"({"type":"number","minimum":-2,"maximum":2})";
constexpr const char* kShare = R"({"type":"number","description":"Below 0 as 0, above 1 as 1."})";
constexpr const char* kCountOrAll =
    R"({"anyOf":[{"type":"integer","minimum":1,"maximum":2147483647},
        {"enum":[-1,-2],"description":"As many as fit."}]})";
constexpr const char* kAnyInteger =
    R"({"type":"integer","minimum":-2147483648,"maximum":2147483647})";
constexpr const char* kSeed =
    R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})";
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

constexpr ApiField kFields[] = {
    {"model", kAll | kEmbeddingBody, R"({"$ref":"#/components/schemas/ModelName"})"},
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
    {"max_tokens", kOpenAiTexts | kAnthropic, kCountOrAll},
    {"max_tokens", kLlamaBody, kAnyInteger},
    {"max_completion_tokens", kChats, kCountOrAll},
    {"max_output_tokens", kResponsesBody, kCountOrAll},
    {"n_predict", kOpenAiTexts, kCountOrAll},
    {"n_predict", kLlamaBody,
     R"({"type":"integer","minimum":-2147483648,"maximum":2147483647,
         "description":"Below 0: to the end of the context; max_tokens means the same."})"},
    {"min_tokens", kAll,
     R"({"type":"integer","minimum":0,"maximum":2147483647,"description":"At most max_tokens."})"},
    {"n", kOpenAiTexts | kLlamaBody, R"({"type":"integer","minimum":1,"maximum":128})"},
    {"temperature", kTexts, R"({"type":"number","minimum":0,"maximum":1e6})"},
    {"temperature", kLlamaBody,
     R"({"type":"number","maximum":1e6,"description":"Below 0 as 0: the likeliest token."})"},
    {"top_p", kTexts, R"({"type":"number","exclusiveMinimum":0,"maximum":1})"},
    {"top_p", kLlamaBody, kShare},
    {"top_k", kTexts, R"({"type":"integer","minimum":-1,"maximum":2147483647})"},
    {"top_k", kLlamaBody, kAnyInteger},
    {"min_p", kTexts, R"({"type":"number","minimum":0,"maximum":1})"},
    {"min_p", kLlamaBody, kShare},
    {"presence_penalty", kAll, kPenalty},
    {"frequency_penalty", kAll, kPenalty},
    {"repetition_penalty", kAll, R"({"type":"number","minimum":1e-6,"maximum":1e6})"},
    {"repeat_penalty", kAll,
     R"({"type":"number","minimum":1e-6,"maximum":1e6,"description":"repetition_penalty"})"},
    {"seed", kTexts, kSeed},
    {"seed", kLlamaBody, kSeed},
    {"stop", kOpenAiTexts | kResponsesBody, kStop},
    {"stop", kLlamaBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"maxItems":256}]})"},
    {"stop_sequences", kAnthropic, kStop},
    {"stop_token_ids", kAll, kIds},
    {"include_stop_str_in_output", kTexts, kFlag},
    {"ignore_eos", kAll, kFlag},
    {"detokenize", kOpenAiTexts,
     R"({"type":"boolean","description":"Stop strings need it true."})"},
    {"skip_special_tokens", kTexts, kFlag},
    {"spaces_between_special_tokens", kTexts, kFlag},
    {"logit_bias", kAll,
     R"({"anyOf":[{"type":"object","maxProperties":1024,
         "propertyNames":{"pattern":"^(0|[1-9][0-9]{0,8})$"},
         "additionalProperties":{"type":"number","description":"Cut to [-100, 100]."}},
         {"type":"array","items":{"type":"array","minItems":2,"maxItems":2,
          "prefixItems":[
            {"anyOf":[{"$ref":"#/components/schemas/TokenId"},
              {"type":"string","description":"Means each of its tokens."}]},
            {"anyOf":[{"type":"number"},{"const":false}]}]},
          "description":"false forbids the token"}]})"},
    {"bad_words", kAll,
     R"({"anyOf":[{"type":"string","minLength":1},
         {"type":"array","items":{"type":"string","minLength":1},"maxItems":256}]})"},
    {"allowed_token_ids", kAll,
     R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}})"},
    {"logprobs", kChats, kFlag},
    {"top_logprobs", kChats, kNumLogprobs},
    {"top_logprobs", kResponsesBody, kNumLogprobs},
    {"logprobs", kCompletionBody, kNumLogprobs},
    {"prompt_logprobs", kOpenAiTexts, kNumLogprobs},
    {"echo", kCompletionBody, kFlag},
    {"stream", kAll, kFlag},
    {"stream_options", kOpenAiTexts,
     R"({"type":"object","additionalProperties":false,
         "properties":{"include_usage":{"type":["boolean","null"]},
           "continuous_usage_stats":{"type":["boolean","null"]},"include_obfuscation":{}},
         "description":"Needs \"stream\": true."})"},
    {"stream_interval", kAll,
     R"({"type":"integer","minimum":1,"maximum":2147483647,
         "description":"Tokens of a choice that a chunk waits for, after the first."})"},
    {"response_format", kOpenAiTexts | kLlamaBody,
     R"({"$ref":"#/components/schemas/ResponseFormat",
         "description":"Goes without structured_outputs; of no effect on calls that a tool_choice forces."})"},
    {"structured_outputs", kAll,
     R"({"$ref":"#/components/schemas/StructuredOutputs",
         "description":"Goes without response_format and a tool_choice that forces a call."})"},
    {"grammar", kTexts, kGrammar},
    {"grammar", kLlamaBody, kGrammar},
    {"json_schema", kTexts, kJsonSchema},
    {"json_schema", kLlamaBody, kJsonSchema},
    {"prediction", kTexts,
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
    {"add_special_tokens", kOpenAiTexts | kEmbeddingBody | kLlamaBody, kFlag},
    {"truncate_prompt_tokens", kTexts | kEmbeddingBody,
     R"({"$ref":"#/components/schemas/NumKept"})"},
    {"return_token_ids", kOpenAiTexts,
     R"({"type":"boolean","description":"Answers have token_ids and prompt_token_ids; a stream has the latter first."})"},
    {"return_tokens_as_token_ids", kOpenAiTexts, kFlag},
    {"return_token_origins", kOpenAiTexts,
     R"({"type":"boolean","description":"Choices have token_origins: who proposed each token."})"},
    {"speculative", kAll, R"({"$ref":"#/components/schemas/Speculative"})"},
    {"speculative", kEmbeddingBody,
     R"({"type":"object","additionalProperties":false,
         "properties":{"enabled":{"enum":[false,null]}},"description":"Vectors draft nothing."})"},
    {"priority", kAll | kEmbeddingBody,
     R"({"type":"integer","minimum":-2147483648,"maximum":2147483647,
         "description":"Lower runs first; needs a server with --scheduling-policy priority."})"},
    {"cache_salt", kTexts | kEmbeddingBody, kText},
    {"lora", kOpenAiTexts | kLlamaBody,
     R"({"type":"array","description":"Adapters of /lora-adapters: at most one scale is 1, all others are 0.",
         "items":{"type":"object","required":["id"],
           "properties":{"id":{"type":"integer","minimum":0},"scale":{"enum":[0,1]}}}})"},
    {"queue_timeout_seconds", kAll, kSeconds},
    {"timeout_seconds", kAll, kSeconds},
    {"request_id", kAll | kEmbeddingBody, kText},
    {"timings_per_token", kOpenAiTexts | kLlamaBody,
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
    {"cache_prompt", kLlamaBody, kFlag},
    {"n_probs", kLlamaBody, R"({"$ref":"#/components/schemas/NumProbs"})"},
    {"post_sampling_probs", kLlamaBody,
     R"({"type":"boolean","description":"n_probs tokens are told with their probabilities after the samplers."})"},
    {"return_tokens", kLlamaBody, kFlag},
    {"response_fields", kLlamaBody,
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],
         "description":"Paths of the fields that the answer has: \"timings/prompt_n\""})"},
    {"mirostat", kAll, kIgnored},
    {"typical_p", kAll, kIgnored},
    {"samplers", kLlamaBody, kIgnored},
    {"repeat_last_n", kAll, kIgnored},
    {"id_slot", kAll, kIgnored},
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

}  // namespace

std::span<const ApiField> api_fields() { return kFields; }

std::vector<const char*> shared_fields(ApiBody from, ApiBody to) {
  std::vector<const char*> names;
  for (const ApiField& field : kFields) {
    if ((field.bodies & from) != 0 && (field.bodies & to) != 0) names.push_back(field.name);
  }
  return names;
}

}  // namespace foretoken
