#include "serve/openapi_schemas.h"

namespace foretoken {
namespace {

constexpr const char* kBodyParts = R"json({
"TokenId": {"type": "integer", "minimum": 0, "maximum": 2147483647},
"ChatMessage": {
  "type": "object", "required": ["role", "content"],
  "properties": {
    "role": {"type": "string", "description": "system, user, assistant or tool, as the template has it"},
    "content": {"anyOf": [{"type": "string"},
      {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}]},
    "name": {"type": "string"},
    "tool_call_id": {"type": "string"},
    "reasoning_content": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
"TextPart": {
  "type": "object", "required": ["type", "text"],
  "properties": {"type": {"const": "text"}, "text": {"type": "string"}}},
"ToolCall": {
  "type": "object", "required": ["function"],
  "properties": {
    "id": {"type": "string"}, "type": {"const": "function"}, "index": {"type": "integer"},
    "function": {"type": "object", "properties": {"name": {"type": "string"},
      "arguments": {"type": "string", "description": "JSON"}}}}},
"Tool": {
  "type": "object", "required": ["type", "function"],
  "properties": {
    "type": {"const": "function"},
    "function": {"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string", "minLength": 1}, "description": {"type": "string"},
      "parameters": {"type": "object"}, "strict": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}}}},
"ToolChoice": {
  "description": "Needs tools, but for \"none\".",
  "anyOf": [{"enum": ["none", "auto", "required"]},
    {"type": "object", "required": ["type", "function"], "properties": {
      "type": {"const": "function"},
      "function": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}]},
"ResponseFormat": {
  "anyOf": [
    {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "json_object"]}}},
    {"type": "object", "required": ["type", "json_schema"], "properties": {
      "type": {"const": "json_schema"},
      "json_schema": {"type": "object", "required": ["schema"], "properties": {
        "name": {"type": "string"}, "schema": {"type": "object"}, "strict": {}}}}},
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "structural_tag"}}}]},
"TextFormat": {
  "anyOf": [
    {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "json_object"]}}},
    {"type": "object", "required": ["type", "schema"], "properties": {
      "type": {"const": "json_schema"}, "name": {"type": "string"}, "schema": {"type": "object"},
      "strict": {}}}]},
"StructuredOutputs": {
  "type": "object", "additionalProperties": false,
  "description": "Exactly one of json, json_object, regex, choice, grammar and structural_tag.",
  "properties": {
    "json": {"anyOf": [{"type": "object"}, {"type": "string", "minLength": 1}]},
    "json_object": {"type": "boolean"},
    "regex": {"type": "string"}, "choice": {"type": "array", "items": {"type": "string"}},
    "grammar": {"type": "string", "description": "Lark or GBNF"},
    "structural_tag": {"anyOf": [{"type": "object"}, {"type": "string"}]},
    "disable_any_whitespace": {"type": "boolean"},
    "disable_additional_properties": {"type": "boolean"},
    "disable_fallback": {"type": "boolean"},
    "whitespace_pattern": {"type": "string"}}},
"Speculative": {
  "type": "object", "additionalProperties": false,
  "description": "Speculation of this request; what is not said is as the server has it.",
  "properties": {
    "enabled": {"type": "boolean"},
    "num_speculative_tokens": {"type": "integer", "minimum": 0, "maximum": 16},
    "method": {"type": "string", "description": "one of the server's drafters"}}},
"TextBlock": {
  "type": "object", "required": ["type", "text"],
  "properties": {"type": {"const": "text"}, "text": {"type": "string"}, "cache_control": {}}},
"AnthropicMessage": {
  "type": "object", "required": ["role", "content"],
  "properties": {
    "role": {"enum": ["user", "assistant"]},
    "content": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items":
      {"anyOf": [{"$ref": "#/components/schemas/TextBlock"},
        {"type": "object", "required": ["type", "id", "name", "input"], "properties": {
          "type": {"const": "tool_use"}, "id": {"type": "string"},
          "name": {"type": "string", "minLength": 1}, "input": {"type": "object"}}},
        {"type": "object", "required": ["type", "tool_use_id"], "properties": {
          "type": {"const": "tool_result"}, "tool_use_id": {"type": "string", "minLength": 1},
          "content": {"anyOf": [{"type": "string"},
            {"type": "array", "items": {"$ref": "#/components/schemas/TextBlock"}}]},
          "is_error": {"type": "boolean"}}},
        {"type": "object", "required": ["type", "thinking"], "properties": {
          "type": {"const": "thinking"}, "thinking": {"type": "string"},
          "signature": {"type": "string"}}}]}}]}}},
"AnthropicTool": {
  "type": "object", "required": ["name", "input_schema"],
  "properties": {"type": {"const": "custom"}, "name": {"type": "string", "minLength": 1},
    "description": {"type": "string"}, "input_schema": {"type": "object"}, "cache_control": {}}},
"FunctionTool": {
  "type": "object", "required": ["type", "name"],
  "properties": {"type": {"const": "function"}, "name": {"type": "string", "minLength": 1},
    "description": {"type": "string"}, "parameters": {"type": "object"},
    "strict": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}},
"InputItem": {
  "anyOf": [
    {"type": "object", "required": ["role", "content"], "properties": {
      "type": {"const": "message"}, "role": {"enum": ["user", "assistant", "system", "developer"]},
      "content": {"anyOf": [{"type": "string"}, {"type": "array", "items":
        {"type": "object", "required": ["type", "text"], "properties": {
          "type": {"enum": ["input_text", "output_text"]}, "text": {"type": "string"}}}}]}}},
    {"type": "object", "required": ["type", "call_id", "name", "arguments"], "properties": {
      "type": {"const": "function_call"}, "call_id": {"type": "string", "minLength": 1},
      "name": {"type": "string", "minLength": 1}, "arguments": {"type": "string"}}},
    {"type": "object", "required": ["type", "call_id", "output"], "properties": {
      "type": {"const": "function_call_output"}, "call_id": {"type": "string", "minLength": 1},
      "output": {"type": "string"}}},
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "reasoning"}}}]}
})json";

constexpr const char* kAnswers = R"json({
"Error": {
  "type": "object", "required": ["error"],
  "properties": {"error": {"type": "object", "required": ["message", "type", "param", "code"],
    "properties": {"message": {"type": "string"}, "type": {"type": "string"},
      "param": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "code": {"type": "integer"}}}}},
"AnthropicError": {
  "type": "object", "required": ["type", "error"],
  "properties": {"type": {"const": "error"},
    "error": {"type": "object", "required": ["type", "message"],
      "properties": {"type": {"type": "string"}, "message": {"type": "string"}}}}},
"Usage": {
  "type": "object", "required": ["prompt_tokens", "total_tokens"],
  "properties": {
    "prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"},
    "completion_tokens": {"type": "integer"},
    "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": {"type": "integer"}}},
    "completion_tokens_details": {"type": "object",
      "description": "Where tokens were drafted: how many are part of the text, and how many not.",
      "properties": {"accepted_prediction_tokens": {"type": "integer"},
        "rejected_prediction_tokens": {"type": "integer"}}}}},
"TokenOrigins": {
  "type": "array",
  "description": "With return_token_origins: the generated text in pieces; those of origin draft were proposed by a drafter and accepted.",
  "items": {"type": "object", "required": ["origin", "num_tokens", "text"], "properties": {
    "origin": {"enum": ["draft", "target"]}, "num_tokens": {"type": "integer"},
    "text": {"type": "string"}}}},
"SpeculationMetrics": {
  "type": "object",
  "description": "With --per-request-spec-decode-metrics summary.",
  "properties": {"speculative_decoding": {"anyOf": [{"type": "null"}, {"type": "object",
    "properties": {"mean_acceptance_length": {"type": "number"},
      "draft_acceptance_rate": {"type": "number"},
      "acceptance_histogram": {"type": "array", "items": {"type": "integer"}},
      "num_spec_steps": {"type": "integer"}, "num_accepted_draft_tokens": {"type": "integer"},
      "num_draft_tokens": {"type": "integer"}, "num_spec_tokens": {"type": "integer"}}}]}}},
"ChatCompletion": {
  "type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "chat.completion"}, "created": {"type": "integer"},
    "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"},
    "metrics": {"$ref": "#/components/schemas/SpeculationMetrics"},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "message", "finish_reason"],
      "properties": {
        "index": {"type": "integer"},
        "message": {"type": "object", "required": ["role", "content"], "properties": {
          "role": {"const": "assistant"},
          "content": {"anyOf": [{"type": "string"}, {"type": "null"}]},
          "reasoning": {"anyOf": [{"type": "string"}, {"type": "null"}]},
          "reasoning_content": {"anyOf": [{"type": "string"}, {"type": "null"}]},
          "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
        "logprobs": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "finish_reason": {"enum": ["stop", "length", "tool_calls", "abort"]},
        "stop_reason": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "token_ids": {"type": "array", "items": {"type": "integer"}},
        "token_origins": {"$ref": "#/components/schemas/TokenOrigins"}}}}}},
"Completion": {
  "type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "text_completion"}, "created": {"type": "integer"},
    "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"},
    "metrics": {"$ref": "#/components/schemas/SpeculationMetrics"},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "text", "finish_reason"],
      "properties": {
        "index": {"type": "integer"}, "text": {"type": "string"},
        "logprobs": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "finish_reason": {"enum": ["stop", "length", "abort"]},
        "stop_reason": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "token_ids": {"type": "array", "items": {"type": "integer"}},
        "token_origins": {"$ref": "#/components/schemas/TokenOrigins"}}}}}},
"Embeddings": {
  "type": "object", "required": ["id", "object", "model", "data", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "model": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "data": {"type": "array", "items": {"type": "object", "required": ["index", "object", "embedding"],
      "properties": {"index": {"type": "integer"}, "object": {"const": "embedding"},
        "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}},
          {"type": "string", "description": "base64 of little-endian floats"}]}}}}}},
"Response": {
  "type": "object", "required": ["id", "object", "created_at", "status", "model", "output"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "created_at": {"type": "integer"},
    "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "cancelled", "failed"]},
    "model": {"type": "string"}, "output": {"type": "array", "items": {"type": "object",
      "required": ["id", "type"], "properties": {"id": {"type": "string"},
        "type": {"enum": ["message", "reasoning", "function_call"]}}}}}},
"DeletedResponse": {
  "type": "object", "required": ["id", "object", "deleted"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "deleted": {"const": true}}},
"Message": {
  "type": "object", "required": ["id", "type", "role", "model", "content", "stop_reason", "usage"],
  "properties": {
    "id": {"type": "string"}, "type": {"const": "message"}, "role": {"const": "assistant"},
    "model": {"type": "string"},
    "content": {"type": "array", "items": {"type": "object", "required": ["type"],
      "properties": {"type": {"enum": ["text", "thinking", "tool_use"]}}}},
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use"]},
    "stop_sequence": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"]}}},
"TokenCount": {"type": "object", "required": ["input_tokens"],
  "properties": {"input_tokens": {"type": "integer"}}},
"Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens", "token_strs"],
  "properties": {"count": {"type": "integer"}, "max_model_len": {"type": "integer"},
    "tokens": {"type": "array", "items": {"type": "integer"}},
    "token_strs": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}},
"Prompt": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"Aborted": {"type": "object", "required": ["aborted"],
  "properties": {"aborted": {"type": "integer"}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"],
  "properties": {"id": {"type": "string"}, "object": {"const": "model"},
    "created": {"type": "integer"}, "owned_by": {"type": "string"},
    "max_model_len": {"type": "integer"}}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"Load": {"type": "object", "required": ["server_load"],
  "properties": {"server_load": {"type": "integer"}}},
"Version": {"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}},
"DetokenizeRequest": {
  "type": "object", "required": ["tokens"], "additionalProperties": false,
  "properties": {"model": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/TokenId"}}}},
"AbortRequest": {
  "type": "object", "additionalProperties": false,
  "properties": {"request_ids": {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "ids of answers; none: all"}}},
"TokenizeText": {
  "type": "object", "required": ["prompt"], "additionalProperties": false,
  "properties": {"model": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "prompt": {"type": "string"},
    "add_special_tokens": {"type": "boolean"}, "return_token_strs": {"type": "boolean"}}}
})json";

}  // namespace

nlohmann::ordered_json openapi_parts() {
  nlohmann::ordered_json parts = nlohmann::ordered_json::parse(kBodyParts);
  parts.update(nlohmann::ordered_json::parse(kAnswers));
  return parts;
}

}  // namespace foretoken
