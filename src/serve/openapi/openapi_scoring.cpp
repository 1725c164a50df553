#include "serve/openapi/openapi_scoring.h"

#include <algorithm>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kScoring = R"json({
"Texts": {
  "anyOf": [{"type": "string", "minLength": 1},
    {"type": "array", "minItems": 1, "maxItems": 2048, "items": {"type": "string", "minLength": 1}}]},
"ScoreRequest": {
  "type": "object", "required": ["text_1", "text_2"], "additionalProperties": false,
  "description": "One text_1 against all of text_2, or equally many. data_1 and data_2, or queries and documents or items, mean the same.",
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "text_1": {"type": "string", "minLength": 1},
    "text_2": {"$ref": "#/components/schemas/Texts"},
    "truncate_prompt_tokens": {"anyOf": [{"$ref": "#/components/schemas/NumKept"}, {"type": "null"}]},
    "add_special_tokens": {"type": ["boolean", "null"]},
    "request_id": {"type": ["string", "null"]}, "user": {"description": "Has no effect."}}},
"RerankRequest": {
  "type": "object", "required": ["query", "documents"], "additionalProperties": false,
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "query": {"type": "string", "minLength": 1},
    "documents": {"type": "array", "minItems": 1, "maxItems": 2048, "items": {"anyOf": [
      {"type": "string", "minLength": 1},
      {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}]}},
    "top_n": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 2147483647}, {"type": "null"}],
      "description": "0: all"},
    "return_documents": {"type": ["boolean", "null"]},
    "truncate_prompt_tokens": {"anyOf": [{"$ref": "#/components/schemas/NumKept"}, {"type": "null"}]},
    "add_special_tokens": {"type": ["boolean", "null"]},
    "request_id": {"type": ["string", "null"]}, "user": {"description": "Has no effect."}}},
"Scores": {
  "type": "object", "required": ["id", "object", "model", "data", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "model": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "data": {"type": "array", "items": {"type": "object", "required": ["index", "object", "score"],
      "properties": {"index": {"type": "integer"}, "object": {"const": "score"},
        "score": {"type": "number", "description": "The cosine of the two embeddings"}}}}}},
"Ranking": {
  "type": "object", "required": ["id", "model", "results", "usage"],
  "properties": {
    "id": {"type": "string"}, "model": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "results": {"type": "array", "description": "Best first",
      "items": {"type": "object", "required": ["index", "relevance_score"],
        "properties": {"index": {"type": "integer"}, "relevance_score": {"type": "number"},
          "document": {"type": "object", "properties": {"text": {"type": "string"}}}}}}}},
"Pooled": {
  "type": "object", "required": ["id", "object", "model", "data", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "model": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "data": {"type": "array", "items": {"type": "object", "required": ["index", "object", "data"],
      "properties": {"index": {"type": "integer"}, "object": {"const": "pooling"},
        "data": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}}}}}}
})json";

// Of /completion and /infill; every one may be null, too.
constexpr const char* kLlamaFields = R"json({
"model": {"$ref": "#/components/schemas/ModelName"},
"n_predict": {"type": "integer", "minimum": -2, "maximum": 2147483647,
  "description": "Below 0: to the end of the context; max_tokens means the same."},
"max_tokens": {"type": "integer", "minimum": -2, "maximum": 2147483647},
"temperature": {"type": "number", "minimum": 0, "maximum": 1e6},
"top_k": {"type": "integer", "minimum": -1, "maximum": 2147483647},
"top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
"min_p": {"type": "number", "minimum": 0, "maximum": 1},
"repeat_penalty": {"type": "number", "minimum": 1e-6, "maximum": 1e6},
"presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
"frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2},
"seed": {"type": "integer", "minimum": -1, "maximum": 18446744073709551615},
"stop": {"type": "array", "maxItems": 256, "items": {"type": "string"}},
"stop_token_ids": {"type": "array", "items": {"$ref": "#/components/schemas/TokenId"}},
"ignore_eos": {"type": "boolean"},
"logit_bias": {"description": "In a list false forbids the token.", "anyOf": [
  {"type": "object", "maxProperties": 1024, "propertyNames": {"pattern": "^(0|[1-9][0-9]{0,8})$"},
    "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}},
  {"type": "array", "maxItems": 1024, "items": {"type": "array", "minItems": 2, "maxItems": 2,
    "prefixItems": [{"$ref": "#/components/schemas/TokenId"},
      {"anyOf": [{"type": "number", "minimum": -100, "maximum": 100}, {"const": false}]}]}}]},
"n_probs": {"$ref": "#/components/schemas/NumProbs"},
"grammar": {"type": "string", "description": "GBNF or Lark"},
"json_schema": {"type": "object"},
"stream": {"type": "boolean"},
"cache_prompt": {"type": "boolean"},
"return_tokens": {"type": "boolean"},
"timings_per_token": {"type": "boolean"},
"response_fields": {"type": "array", "items": {"type": "string"},
  "description": "Paths of the fields that the answer has: \"timings/prompt_n\""},
"speculative": {"$ref": "#/components/schemas/Speculative"},
"request_id": {"type": "string"},
"mirostat": {"description": "Has no effect."},
"typical_p": {"description": "Has no effect."},
"repeat_last_n": {"description": "Has no effect."},
"samplers": {"description": "Has no effect."},
"id_slot": {"description": "Has no effect."}
})json";

constexpr const char* kLlama = R"json({
"LlamaPrompt": {
  "anyOf": [{"type": "string", "minLength": 1},
    {"type": "array", "minItems": 1, "maxItems": 64, "items": {"type": "string", "minLength": 1}},
    {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/TokenId"}}]},
"LlamaAnswer": {
  "type": "object", "required": ["content", "stop"],
  "properties": {
    "content": {"type": "string"}, "stop": {"type": "boolean"}, "index": {"type": "integer"},
    "tokens": {"type": "array", "items": {"type": "integer"}},
    "stop_type": {"enum": ["none", "eos", "limit", "word"]}, "stopping_word": {"type": "string"},
    "tokens_predicted": {"type": "integer"}, "tokens_evaluated": {"type": "integer"},
    "tokens_cached": {"type": "integer"}, "truncated": {"type": "boolean"},
    "generation_settings": {"type": "object"}, "timings": {"type": "object"}}},
"LlamaCompletion": {
  "description": "A list where there are several prompts or choices.",
  "anyOf": [{"$ref": "#/components/schemas/LlamaAnswer"},
    {"type": "object", "description": "With response_fields"},
    {"type": "array", "items": {"type": "object"}}]},
"LlamaEmbeddingRequest": {
  "type": "object", "required": ["content"], "additionalProperties": false,
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "content": {"$ref": "#/components/schemas/Texts"},
    "embd_normalize": {"enum": [2, -1, null]}}},
"LlamaEmbeddings": {
  "type": "array", "items": {"type": "object", "required": ["index", "embedding"],
    "properties": {"index": {"type": "integer"}, "embedding": {"type": "array",
      "items": {"type": "array", "items": {"type": "number"}}}}}},
"TokenizeContent": {
  "type": "object", "required": ["content"], "additionalProperties": false,
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "content": {"type": "string"}, "add_special": {"type": ["boolean", "null"]},
    "with_pieces": {"type": ["boolean", "null"]}, "parse_special": {"enum": [true, null]}}},
"Props": {
  "type": "object", "required": ["total_slots", "chat_template", "model_path"],
  "properties": {"total_slots": {"type": "integer"}, "chat_template": {"type": "string"},
    "model_path": {"type": "string"}, "bos_token": {"type": "string"}, "eos_token": {"type": "string"},
    "build_info": {"type": "string"}, "default_generation_settings": {"type": "object"}}},
"Slots": {
  "type": "array", "items": {"type": "object", "required": ["id", "n_ctx", "is_processing"],
    "properties": {"id": {"type": "integer"}, "n_ctx": {"type": "integer"},
      "is_processing": {"type": "boolean"}, "speculative": {"type": "boolean"}}}},
"Sleeping": {"type": "object", "required": ["is_sleeping"],
  "properties": {"is_sleeping": {"type": "boolean"}}}
})json";

constexpr const char* kAdapters = R"json({
"LoadAdapterRequest": {
  "type": "object", "required": ["lora_name", "lora_path"], "additionalProperties": false,
  "properties": {
    "lora_name": {"type": "string", "minLength": 1},
    "lora_path": {"type": "string", "minLength": 1, "description": "A PEFT folder"},
    "load_inplace": {"type": ["boolean", "null"], "description": "One of that name may be there"},
    "is_3d_lora_weight": {"description": "Has no effect."}}},
"UnloadAdapterRequest": {
  "type": "object", "required": ["lora_name"], "additionalProperties": false,
  "properties": {"lora_name": {"type": "string", "minLength": 1},
    "lora_int_id": {"description": "Has no effect."}}},
"AdapterScales": {
  "type": "array", "description": "At most one scale is 1, all others are 0.",
  "items": {"type": "object", "required": ["id"],
    "properties": {"id": {"type": "integer", "minimum": 0}, "scale": {"enum": [0, 1]}}}},
"Adapters": {
  "type": "array", "items": {"type": "object", "required": ["id", "path", "scale"],
    "properties": {"id": {"type": "integer"}, "path": {"type": "string"},
      "scale": {"type": "number"}, "name": {"type": "string"}}}},
"AdaptersChosen": {"type": "object", "required": ["success"],
  "properties": {"success": {"const": true}}}
})json";

json llama_body(const char* required_fields) {
  json required = json::parse(required_fields);
  json properties = required;
  const json fields = json::parse(kLlamaFields);
  for (const auto& [name, schema] : fields.items()) {
    const bool any = schema.size() == 1 && schema.contains("description");
    properties[name] = any ? schema : json{{"anyOf", {schema, {{"type", "null"}}}}};
  }
  json names = json::array();
  for (const auto& [name, schema] : required.items()) names.push_back(name);
  return {{"type", "object"},
          {"required", std::move(names)},
          {"additionalProperties", false},
          {"properties", std::move(properties)}};
}

}  // namespace

json openapi_more_parts(const OpenApiFacts& facts) {
  json parts = json::parse(kScoring);
  parts.update(json::parse(kLlama));
  parts.update(json::parse(kAdapters));
  parts["NumProbs"] = {{"type", "integer"},
                       {"minimum", 0},
                       {"maximum", std::min(facts.max_logprobs, facts.vocab_size)}};
  parts["LlamaCompletionRequest"] =
      llama_body(R"({"prompt":{"$ref":"#/components/schemas/LlamaPrompt"}})");
  json pooling = openapi_body(kEmbeddingBody, facts);
  pooling["properties"]["task"] = {{"enum", {"embed", nullptr}}};
  parts["PoolingRequest"] = std::move(pooling);
  if (!facts.fills_gaps) return parts;
  json infill =
      llama_body(R"({"input_prefix":{"type":"string"},"input_suffix":{"type":"string"}})");
  infill["properties"]["prompt"] = {{"type", {"string", "null"}}};
  infill["properties"]["input_extra"] = json::parse(
      R"({"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object","required":["text"],
          "properties":{"filename":{"type":"string"},"text":{"type":"string"}}}}]})");
  parts["InfillRequest"] = std::move(infill);
  return parts;
}

}  // namespace foretoken
