#include "serve/openapi/openapi_schemas.h"

#include <algorithm>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kBodyParts = R"json({
"ChatMessage": {
  "description": "name, tool_call_id, reasoning_content and tool_calls, [{\"id\", \"type\": \"function\", \"function\": {\"name\", \"arguments\"}}], are given to the template as they are.",
  "anyOf": [
    {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"type": "string", "description": "system, user, assistant or tool, as the template has it"},
      "content": {"anyOf": [{"type": "string"}, {"type": "array", "items":
        {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/TextPart"}]}}]}}},
    {"type": "object", "required": ["role"], "description": "Without content",
      "properties": {"role": {"enum": ["assistant", "tool"]}, "content": {"type": "null"}}},
    {"type": "object", "required": ["role", "content"],
      "properties": {"role": {"type": "string"}, "content": {"type": "null"}}}]},
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
  "type": "object", "required": ["function"],
  "properties": {
    "type": {"const": "function"},
    "function": {"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string", "minLength": 1}, "description": {"type": ["string", "null"]},
      "parameters": {"type": ["object", "null"]}, "strict": {}}}}},
"ToolChoice": {
  "description": "Needs tools, but for \"none\".",
  "anyOf": [{"enum": ["none", "auto", "required", "any"]},
    {"type": "object", "required": ["type", "function"], "properties": {
      "type": {"const": "function"},
      "function": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}},
    {"type": "object", "required": ["type", "allowed_tools"], "properties": {
      "type": {"const": "allowed_tools"},
      "allowed_tools": {"type": "object", "required": ["tools"], "properties": {
        "mode": {"enum": ["auto", "required"]},
        "tools": {"type": "array", "description": "Of functions in tools", "items": {"anyOf": [
          {"type": "object", "required": ["type", "function"], "properties": {"type": {"const": "function"},
            "function": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}},
          {"type": "object", "required": ["type"], "description": "Passed over",
            "properties": {"type": {"type": "string", "not": {"const": "function"}}}}]}}}}}}]},
"ResponseFormat": {
  "anyOf": [
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}}},
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "json_object"},
      "schema": {"type": ["object", "boolean", "null"]}}},
    {"type": "object", "required": ["type", "schema"], "properties": {
      "type": {"const": "json_schema"}, "schema": {"type": "object"}}},
    {"type": "object", "required": ["type", "json_schema"], "properties": {
      "type": {"const": "json_schema"},
      "json_schema": {"type": "object", "required": ["schema"], "properties": {
        "name": {"type": "string"}, "schema": {"type": "object"}, "strict": {}}}}},
    {"type": "object", "required": ["type", "pattern"], "properties": {
      "type": {"const": "regex"}, "pattern": {"type": "string", "minLength": 1}}},
    {"type": "object", "required": ["type", "grammar"], "properties": {
      "type": {"const": "grammar"},
      "grammar": {"type": "string", "minLength": 1, "description": "Lark or GBNF"}}},
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "structural_tag"}}}]},
"TextFormat": {
  "anyOf": [
    {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "json_object"]}}},
    {"type": "object", "required": ["type", "schema"], "properties": {
      "type": {"const": "json_schema"}, "name": {"type": "string"}, "schema": {"type": "object"},
      "strict": {}}}]},
"TextBlock": {
  "type": "object", "required": ["text"],
  "properties": {"type": {"const": "text"}, "text": {"type": "string"}, "cache_control": {}}},
"AnthropicMessage": {
  "anyOf": [
    {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"enum": ["user", "assistant", "ctx", "msg"]}, "content": {"type": "string"}}},
    {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"enum": ["user", "ctx", "msg"]},
      "content": {"type": "array", "items": {"anyOf": [
        {"type": "string"}, {"$ref": "#/components/schemas/TextBlock"},
        {"$ref": "#/components/schemas/DocumentBlock"},
        {"$ref": "#/components/schemas/SearchResultBlock"}, {"$ref": "#/components/schemas/ChangeBlock"},
        {"$ref": "#/components/schemas/SystemBlock"}, {"$ref": "#/components/schemas/ToolResultBlock"}]}}}},
    {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"const": "assistant"},
      "content": {"type": "array", "items": {"anyOf": [
        {"type": "string"}, {"$ref": "#/components/schemas/TextBlock"},
        {"$ref": "#/components/schemas/ToolUseBlock"},
        {"$ref": "#/components/schemas/ThinkingBlock"},
        {"$ref": "#/components/schemas/OtherBlock"}]}}}},
    {"type": "object", "required": ["role"], "properties": {
      "role": {"enum": ["system", "developer"]},
      "content": {"anyOf": [{"type": "null"}, {"type": "string"},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/TextBlock"},
          {"$ref": "#/components/schemas/ChangeBlock"}, {"$ref": "#/components/schemas/SystemBlock"}]}}]}}}]},
"ChangeBlock": {
  "type": "object", "required": ["type", "tool"], "description": "Holds from there on.", "properties": {
    "type": {"enum": ["tool_addition", "tool_removal"]},
    "tool": {"anyOf": [
      {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}},
      {"type": "object", "required": ["definition"], "properties": {"definition": {"anyOf": [
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1},
          "type": {"type": ["string", "null"]}, "input_schema": {"type": "object"}}},
        {"type": "object", "required": ["type"], "description": "Left out with a warning.",
          "properties": {"type": {"type": "string", "minLength": 1, "not": {"const": "custom"}}}}]}}}]}}},
"SystemBlock": {
  "type": "object", "required": ["type"], "properties": {"type": {"const": "mid_conv_system"},
    "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"anyOf": [
      {"$ref": "#/components/schemas/TextBlock"}, {"$ref": "#/components/schemas/ChangeBlock"}]}}]}}},
"ToolUseBlock": {
  "type": "object", "required": ["type", "id", "name", "input"], "properties": {
    "type": {"const": "tool_use"}, "id": {"type": "string"},
    "name": {"type": "string", "minLength": 1}, "input": {"type": "object"}}},
"ToolResultBlock": {
  "type": "object", "required": ["type", "tool_use_id"], "properties": {
    "type": {"const": "tool_result"}, "tool_use_id": {"type": "string", "minLength": 1},
    "content": {"anyOf": [{"type": "string"}, {"type": "null"},
      {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/TextBlock"},
        {"$ref": "#/components/schemas/OtherBlock"}]}}]},
    "is_error": {"type": ["boolean", "null"]}}},
"OtherBlock": {
  "type": "object", "required": ["type"], "description": "Left out, with a warning.",
  "properties": {"type": {"type": "string", "minLength": 1, "not": {"anyOf": [
    {"enum": ["text", "document", "search_result", "tool_reference", "thinking", "redacted_thinking",
              "compaction", "mid_conv_system", "tool_addition", "tool_removal"]},
    {"pattern": "tool_use$|_tool_result$"}]}}}},
"ThinkingBlock": {
  "type": "object", "required": ["type"],
  "properties": {"type": {"enum": ["thinking", "redacted_thinking"]}}},
"DocumentBlock": {
  "type": "object", "required": ["type", "source"], "properties": {
    "type": {"const": "document"}, "title": {"type": ["string", "null"]},
    "context": {"type": ["string", "null"]},
    "source": {"type": "object", "required": ["type", "data"], "properties": {
      "type": {"const": "text"}, "data": {"type": "string"}}}}},
"SearchResultBlock": {
  "type": "object", "required": ["type"], "properties": {
    "type": {"const": "search_result"}, "title": {"type": ["string", "null"]},
    "source": {"type": ["string", "null"]},
    "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items":
      {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/TextBlock"}]}}]}}},
"AnthropicTool": {
  "anyOf": [
    {"type": "object", "required": ["name", "input_schema"],
      "properties": {"type": {"const": "custom"}, "name": {"type": "string", "minLength": 1},
        "description": {"type": ["string", "null"]}, "input_schema": {"type": "object"}, "cache_control": {}}},
    {"type": "object", "required": ["type"], "description": "Left out with a warning.",
      "properties": {"type": {"type": "string", "not": {"const": "custom"}}}}]},
"FunctionTool": {
  "anyOf": [
    {"type": "object", "required": ["type", "name"],
      "properties": {"type": {"const": "function"}, "name": {"type": "string", "minLength": 1},
        "description": {"type": ["string", "null"]}, "parameters": {"type": ["object", "null"]},
        "strict": {}}},
    {"type": "object", "required": ["type", "name"], "description": "A tool whose input is a text.",
      "properties": {"type": {"const": "custom"}, "name": {"type": "string", "minLength": 1},
        "description": {"type": ["string", "null"]}, "format": {}}},
    {"type": "object", "required": ["type", "name", "tools"], "description": "Tools with a name in front.",
      "properties": {"type": {"const": "namespace"}, "name": {"type": "string", "minLength": 1},
        "tools": {"type": "array", "items": {"type": "object", "required": ["type", "name"],
          "properties": {"type": {"enum": ["function", "custom"]}, "name": {"type": "string", "minLength": 1},
            "description": {"type": ["string", "null"]}, "parameters": {"type": ["object", "null"]}}}}}},
    {"type": "object", "required": ["type"], "description": "Left out with a warning.",
      "properties": {"type": {"type": "string", "not": {"enum": ["function", "custom", "namespace"]}}}}]},
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
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "reasoning"},
      "content": {"anyOf": [{"type": "null"}, {"type": "array", "items":
        {"type": "object", "required": ["type", "text"], "properties": {
          "type": {"const": "reasoning_text"}, "text": {"type": "string"}}}}]}}},
    {"type": "object", "required": ["type", "id"], "properties": {
      "type": {"const": "item_reference"},
      "id": {"type": "string", "description": "Of an item of a response that is kept"}}},
    {"type": "object", "required": ["type"], "properties": {
      "type": {"enum": ["additional_tools", "tool_search_output"]},
      "tools": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/components/schemas/FunctionTool"}}]}}},
    {"type": "object", "required": ["type"], "properties": {"type": {"const": "configuration_update"},
      "reasoning": {"type": ["object", "null"], "properties": {"effort": {"type": ["string", "null"]}}},
      "text": {"type": ["object", "null"], "properties": {
        "format": {"anyOf": [{"$ref": "#/components/schemas/TextFormat"}, {"type": "null"}]}}}}},
    {"type": "object", "required": ["type"],
      "description": "Left out with a warning: web_search_call, compaction, ...",
      "properties": {"type": {"type": "string", "minLength": 1, "not": {"enum": ["message",
        "reasoning", "function_call", "function_call_output", "mcp_call", "item_reference", "custom_tool_call",
        "custom_tool_call_output", "local_shell_call", "local_shell_call_output", "shell_call",
        "shell_call_output", "apply_patch_call", "apply_patch_call_output", "additional_tools",
        "tool_search_output", "configuration_update"]}}}}]},
"ConversationRequest": {
  "type": "object", "additionalProperties": false, "properties": {
    "items": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/components/schemas/InputItem"}}]},
    "metadata": {"$ref": "#/components/schemas/Labels"}}},
"ConversationLabels": {
  "type": "object", "additionalProperties": false, "properties": {
    "metadata": {"$ref": "#/components/schemas/Labels"}}},
"ConversationItemsRequest": {
  "type": "object", "required": ["items"], "additionalProperties": false, "properties": {
    "items": {"type": "array", "items": {"$ref": "#/components/schemas/InputItem"}}}},
"Labels": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
"Conversation": {
  "type": "object", "required": ["id", "object", "created_at", "metadata"], "properties": {
    "id": {"type": "string"}, "object": {"const": "conversation"}, "created_at": {"type": "integer"},
    "metadata": {"type": "object"}}},
"ConversationItem": {"type": "object", "required": ["id", "type"]},
"DeletedConversation": {
  "type": "object", "required": ["id", "object", "deleted"], "properties": {
    "id": {"type": "string"}, "object": {"const": "conversation.deleted"}, "deleted": {"const": true}}},
"DetokenizeRequest": {
  "type": "object", "required": ["tokens"], "additionalProperties": false,
  "properties": {"model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/TokenId"}}}},
"AbortRequest": {
  "type": "object", "additionalProperties": false,
  "properties": {"request_ids": {
    "anyOf": [{"type": "null"}, {"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "ids of answers; none: all"}}},
"TokenizeText": {
  "type": "object", "required": ["prompt"], "additionalProperties": false,
  "properties": {"model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "prompt": {"type": "string"},
    "add_special_tokens": {"type": ["boolean", "null"]},
    "return_token_strs": {"type": ["boolean", "null"]}}}
})json";

constexpr const char* kAnswers = R"json({
"Error": {
  "type": "object", "required": ["error"],
  "properties": {"error": {"type": "object", "required": ["message", "type", "param", "code"],
    "properties": {"message": {"type": "string"}, "type": {"type": "string"},
      "param": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "code": {"type": "integer"}}}}},
"StreamEvent": {
  "type": "object", "required": ["data"],
  "description": "Each event of a stream.",
  "properties": {"event": {"type": "string"},
    "data": {"type": "string", "description": "JSON, or [DONE] at the end of OpenAI's streams"}}},
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
      "description": "With a prediction: of the tokens that were drafted from it, how many are part of the text, and how many not. Without one, where tokens were drafted: the same of all of them. Of reasoning that is split off: its share of the tokens.",
      "properties": {"accepted_prediction_tokens": {"type": "integer"},
        "rejected_prediction_tokens": {"type": "integer"},
        "reasoning_tokens": {"type": "integer"}}}}},
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
          "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
          "function_call": {"type": "object", "description": "Where the request had functions",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}}}}},
        "logprobs": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "finish_reason": {"enum": ["stop", "length", "tool_calls", "function_call", "abort"]},
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
          {"type": "string", "description": "base64 of little-endian floats, or as embed_dtype and endianness say"}]}}}}}},
"Response": {
  "type": "object", "required": ["id", "object", "created_at", "status", "model", "output"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "created_at": {"type": "integer"},
    "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "cancelled", "failed"]},
    "model": {"type": "string"}, "output": {"type": "array", "items": {"type": "object",
      "required": ["id", "type"], "properties": {"id": {"type": "string"},
        "type": {"enum": ["message", "reasoning", "function_call"]}}}}}},
"InputItems": {
  "type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"],
  "properties": {
    "object": {"const": "list"}, "has_more": {"type": "boolean"},
    "first_id": {"type": ["string", "null"]}, "last_id": {"type": ["string", "null"]},
    "data": {"type": "array", "items": {"type": "object", "required": ["id", "type"]}}}},
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
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]},
    "stop_sequence": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"]}}},
"TokenCount": {"type": "object", "required": ["input_tokens"],
  "properties": {"input_tokens": {"type": "integer"}}},
"InputTokens": {"type": "object", "required": ["object", "input_tokens"],
  "properties": {"object": {"const": "response.input_tokens"}, "input_tokens": {"type": "integer"}}},
"Tokens": {"type": "object", "required": ["tokens"],
  "properties": {"count": {"type": "integer"}, "max_model_len": {"type": "integer"},
    "tokens": {"type": "array", "items": {"anyOf": [{"type": "integer"},
      {"type": "object", "description": "Of llama.cpp's form with pieces", "required": ["id", "piece"]}]}},
    "token_strs": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}},
"Prompt": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"Detokenized": {"type": "object", "required": ["prompt", "content"],
  "properties": {"prompt": {"type": "string"}, "content": {"type": "string"}}},
"Aborted": {"type": "object", "required": ["aborted"],
  "properties": {"aborted": {"type": "integer"}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"],
  "properties": {"id": {"type": "string"}, "object": {"const": "model"},
    "created": {"type": "integer"}, "owned_by": {"type": "string"},
    "max_model_len": {"type": "integer"}, "root": {"type": "string"}, "permission": {"type": "array"},
    "meta": {"type": "object", "description": "n_vocab, n_ctx, n_ctx_train, n_embd, n_params, size"}}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}},
  "models": {"type": "array", "items": {"type": "object", "required": ["name", "model"]},
    "description": "The same in Ollama's form, as llama.cpp has it; also at /api/tags"}}},
"Load": {"type": "object", "required": ["server_load"],
  "properties": {"server_load": {"type": "integer"}}},
"Version": {"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}}
})json";

json or_null(json schema) { return {{"anyOf", {std::move(schema), {{"type", "null"}}}}}; }

struct Form {
  const char* name;
  const char* schema;
  const char* absent;  // what stands for none
  bool has_schemas = false;
};

constexpr Form kForms[] = {
    {"json", R"({"anyOf":[{"type":"object"},{"type":"string","minLength":1}],
        "description":"A JSON schema"})",
     R"({"type":"null"})", true},
    {"json_object", R"({"const":true})", R"({"enum":[false,null]})", true},
    {"regex", R"({"type":"string","minLength":1})", R"({"enum":["",null]})"},
    {"choice", R"({"anyOf":[{"type":"string"},
        {"type":"array","minItems":1,"items":{"type":"string"}}]})",
     R"({"enum":[[],null]})"},
    {"grammar", R"({"type":"string","minLength":1,"description":"Lark or GBNF"})",
     R"({"enum":["",null]})"},
    {"structural_tag", R"({"anyOf":[{"type":"object"},{"type":"string","minLength":1}]})",
     R"({"enum":["",null]})", true},
};

// Exactly one form, beside options.
json structured_outputs() {
  json forms = json::array();
  for (const Form& form : kForms) {
    json properties;
    for (const Form& other : kForms) properties[other.name] = json::parse(other.absent);
    properties[form.name] = json::parse(form.schema);
    properties["strict_schemas"] = {{"type", {"boolean", "null"}}};
    for (const char* flag : {"disable_any_whitespace", "disable_additional_properties"}) {
      properties[flag] = {{"type", {"boolean", "null"}}};
      if (!form.has_schemas) properties[flag] = {{"enum", {false, nullptr}}};
    }
    properties["disable_fallback"] = {{"description", "Has no effect."}};
    properties["whitespace_pattern"] = {{"type", {"string", "null"}}, {"description", "A regex"}};
    if (!form.has_schemas) properties["whitespace_pattern"] = {{"enum", {"", nullptr}}};
    forms.push_back({{"type", "object"},
                     {"required", {form.name}},
                     {"additionalProperties", false},
                     {"properties", std::move(properties)}});
  }
  return {{"anyOf", std::move(forms)}};
}

json speculative(const OpenApiFacts& facts) {
  constexpr const char* kDescription =
      "Speculation of this request; what is not said is as the server has it.";
  const auto object = [](json enabled, json number, json method) -> json {
    return {{"type", "object"},
            {"additionalProperties", false},
            {"properties",
             {{"enabled", std::move(enabled)},
              {"num_speculative_tokens", std::move(number)},
              {"method", std::move(method)}}}};
  };
  json off = object({{"enum", {false, nullptr}}}, {{"enum", {0, nullptr}}}, {{"type", "null"}});
  if (facts.drafters.empty()) {
    off["description"] = kDescription;
    return off;
  }
  json methods = facts.drafters;
  for (const std::vector<std::string>& list : facts.drafter_lists) methods.push_back(list);
  json number = {{"type", "integer"}, {"minimum", 0}, {"maximum", facts.max_draft_tokens}};
  json on = object({{"enum", {true, nullptr}}}, or_null(std::move(number)),
                   or_null({{"enum", std::move(methods)}}));
  return {{"description", kDescription}, {"anyOf", {std::move(on), std::move(off)}}};
}

json model_name(const OpenApiFacts& facts) {
  if (facts.any_model) return {{"type", "string"}};
  // An empty name is that of the model.
  json names = facts.model_names;
  names.push_back("");
  return {{"enum", std::move(names)}};
}

json num_logprobs(const OpenApiFacts& facts) {
  const bool all = facts.max_logprobs >= facts.vocab_size;
  return {{"type", "integer"},
          {"minimum", all ? -1 : 0},
          {"maximum", std::min(facts.max_logprobs, facts.vocab_size)}};
}

}  // namespace

json openapi_parts(const OpenApiFacts& facts) {
  json parts = json::parse(kBodyParts);
  parts["TokenId"] = {{"type", "integer"}, {"minimum", 0}, {"maximum", facts.vocab_size - 1}};
  parts["ModelName"] = model_name(facts);
  parts["NumLogprobs"] = num_logprobs(facts);
  parts["NumDimensions"] = {{"description", "So many of the first numbers, to length 1 again."},
                            {"type", "integer"},
                            {"minimum", 1},
                            {"maximum", facts.embedding_size}};
  parts["NumKept"] = {
      {"description", "The last so many tokens of the prompt; -1: as many as fit."},
      {"anyOf",
       {{{"const", -1}}, {{"type", "integer"}, {"minimum", 1}, {"maximum", facts.max_model_len}}}}};
  parts["StructuredOutputs"] = structured_outputs();
  parts["Speculative"] = speculative(facts);
  if (!facts.strict_fields) {
    json closed;
    for (const char* name : {"AbortRequest", "Speculative"}) closed[name] = parts[name];
    allow_more_properties(&parts);
    parts.update(closed);
  }
  parts.update(json::parse(kAnswers));
  return parts;
}

}  // namespace foretoken
