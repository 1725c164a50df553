#include "serve/openapi/openapi_scoring.h"

#include <algorithm>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kScoring = R"json({
"Text": {
  "anyOf": [{"type": "string", "minLength": 1},
    {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
    {"type": "object", "required": ["content"], "properties": {
      "text": false,
      "content": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["type", "text"],
        "properties": {"type": {"const": "text"}, "text": {"type": "string", "minLength": 1}}}}}}]},
"Texts": {
  "anyOf": [{"$ref": "#/components/schemas/Text"},
    {"type": "array", "minItems": 1, "maxItems": 4095, "items": {"$ref": "#/components/schemas/Text"}}]},
"OneText": {
  "anyOf": [{"$ref": "#/components/schemas/Text"},
    {"type": "array", "minItems": 1, "maxItems": 1, "items": {"$ref": "#/components/schemas/Text"}}]},
"ScoreRequest": {
  "type": "object", "required": ["text_1", "text_2"], "additionalProperties": false,
  "description": "One text_1 against all of text_2, or equally many. data_1 and data_2, or queries and documents or items, mean the same.",
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "text_1": {"$ref": "#/components/schemas/OneText"},
    "text_2": {"$ref": "#/components/schemas/Texts"},
    "max_tokens_per_query": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "Longer queries are compared by their beginning; 0: whole"},
    "max_tokens_per_doc": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "Longer documents are compared by their beginning; 0: whole"},
    "truncate_prompt_tokens": {"anyOf": [{"$ref": "#/components/schemas/NumKept"}, {"type": "null"}]},
    "truncation_side": {"enum": ["left", "right", null]}, "cache_salt": {"type": ["string", "null"]},
    "add_special_tokens": {"type": ["boolean", "null"]},
    "request_id": {"type": ["string", "null"]}, "user": {"description": "Has no effect."}}},
"RerankRequest": {
  "type": "object", "required": ["query", "documents"], "additionalProperties": false,
  "description": "texts and return_text in place of documents and return_documents: the answer is a list of {index, text, score}.",
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "query": {"$ref": "#/components/schemas/OneText"},
    "documents": {"$ref": "#/components/schemas/Texts"},
    "top_n": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "0: all"},
    "top_k": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "Voyage's name of top_n."},
    "truncation": {"type": ["boolean", "null"],
      "description": "Voyage's: true cuts what is too long at its end."},
    "max_tokens_per_query": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "Longer queries are compared by their beginning; 0: whole"},
    "max_tokens_per_doc": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
      "description": "Longer documents are compared by their beginning; 0: whole"},
    "return_documents": {"type": ["boolean", "null"]},
    "truncate_prompt_tokens": {"anyOf": [{"$ref": "#/components/schemas/NumKept"}, {"type": "null"}]},
    "truncation_side": {"enum": ["left", "right", null]}, "cache_salt": {"type": ["string", "null"]},
    "add_special_tokens": {"type": ["boolean", "null"]},
    "request_id": {"type": ["string", "null"]}, "user": {"description": "Has no effect."}}},
"LabelScoreRequest": {
  "type": "object", "required": ["query", "items", "label_token_ids"], "additionalProperties": false,
  "description": "Each item behind the query. With these fields /v1/score answers in SGLang's form.",
  "properties": {
    "model": {"anyOf": [{"$ref": "#/components/schemas/ModelName"}, {"type": "null"}]},
    "query": {"$ref": "#/components/schemas/ScoredText"},
    "items": {"type": "array", "minItems": 1, "maxItems": 4096,
      "items": {"$ref": "#/components/schemas/ScoredText"}},
    "label_token_ids": {"type": "array", "minItems": 1, "maxItems": 20,
      "items": {"$ref": "#/components/schemas/TokenId"}},
    "apply_softmax": {"type": ["boolean", "null"],
      "description": "Probabilities among the labels alone (the default)"},
    "item_first": {"type": ["boolean", "null"]}, "add_special_tokens": {"type": ["boolean", "null"]},
    "priority": {"type": ["integer", "null"]},
    "request_id": {"type": ["string", "null"]}, "user": {"description": "Has no effect."}}},
"ScoredText": {
  "anyOf": [{"type": "string", "minLength": 1},
    {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/TokenId"}}]},
"Scores": {
  "type": "object", "required": ["id", "object", "model", "data", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "model": {"type": "string"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "data": {"type": "array", "items": {"type": "object", "required": ["index", "object", "score"],
      "properties": {"index": {"type": "integer"}, "object": {"const": "score"},
        "score": {"type": "number", "description": "The cosine of two embeddings, or a label's probability"}}}}}},
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

constexpr const char* kLlama = R"json({
"LlamaPromptParts": {
  "description": "Texts and token ids in one list are one prompt.",
  "type": "array", "minItems": 1, "items":
    {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/components/schemas/TokenId"}]}},
"LlamaPrompt": {
  "anyOf": [{"type": "string", "minLength": 1},
    {"type": "object", "required": ["prompt_string"],
      "properties": {"prompt_string": {"type": "string", "minLength": 1}}},
    {"$ref": "#/components/schemas/LlamaPromptParts"},
    {"type": "array", "minItems": 1, "maxItems": 4096, "items":
      {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/components/schemas/LlamaPromptParts"}]}}]},
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
    "content": {"$ref": "#/components/schemas/Prompts"},
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
"ServerInfo": {"type": "object", "required": ["version", "vllm_config"],
  "properties": {"version": {"type": "string"}, "vllm_config": {"type": "object"}}},
"Sleeping": {"type": "object", "required": ["is_sleeping"],
  "properties": {"is_sleeping": {"type": "boolean"}, "released_bytes": {"type": "integer"}}}
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

// Any name does, as with llama.cpp.
void open_model_name(const OpenApiFacts& facts, json* body) {
  if (!facts.strict_fields) (*body)["properties"]["model"] = {{"type", {"string", "null"}}};
}

// What /completion and /infill share, and their own `required` fields.
json llama_body(const OpenApiFacts& facts, const char* required) {
  json body = openapi_body(kLlamaBody, facts);
  open_model_name(facts, &body);
  body["required"] = json::array();
  const json fields = json::parse(required);
  for (const auto& [name, schema] : fields.items()) {
    body["properties"][name] = schema;
    body["required"].push_back(name);
  }
  return body;
}

}  // namespace

json openapi_more_parts(const OpenApiFacts& facts) {
  json parts = json::parse(kScoring);
  parts.update(json::parse(kLlama));
  parts.update(json::parse(kAdapters));
  if (!facts.strict_fields) allow_more_properties(&parts);
  parts["Prompts"] = openapi_body(kEmbeddingBody, facts)["properties"]["input"]["anyOf"][0];
  parts["NumProbs"] = {{"type", "integer"},
                       {"minimum", 0},
                       {"maximum", std::min(facts.max_logprobs, facts.vocab_size)}};
  parts["LlamaCompletionRequest"] =
      llama_body(facts, R"({"prompt":{"$ref":"#/components/schemas/LlamaPrompt"}})");
  open_model_name(facts, &parts["LlamaEmbeddingRequest"]);
  json pooling = openapi_body(kEmbeddingBody, facts);
  pooling["properties"]["task"] = {{"enum", {"embed", "token_embed", "token_classify", nullptr}}};
  parts["PoolingRequest"] = std::move(pooling);
  if (!facts.fills_gaps) return parts;
  json infill =
      llama_body(facts, R"({"input_prefix":{"type":"string"},"input_suffix":{"type":"string"}})");
  infill["properties"]["prompt"] = {{"type", {"string", "null"}}};
  infill["properties"]["input_extra"] = json::parse(
      R"({"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object","required":["text"],
          "properties":{"filename":{"type":"string"},"text":{"type":"string"}}}}]})");
  parts["InfillRequest"] = std::move(infill);
  return parts;
}

}  // namespace foretoken
