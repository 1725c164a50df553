#pragma once
#include <foretoken/request.h>

#include "serve/fields/json_fields.h"

namespace foretoken {

// The form of the output that a body asks for, by "response_format" (text, json_object,
// json_schema, structural_tag) or vLLM's "structured_outputs" ({"json", "json_object", "regex",
// "choice", "grammar", "structural_tag", "disable_any_whitespace",
// "disable_additional_properties", "whitespace_pattern"}), or by vLLM's older fields, "guided_json"
// and the like, with one warning in the log, or by llama.cpp's "json_schema" and "grammar". Two of
// these at once are an error. `strict`: of forms that do not say "strict_schemas" themselves.
// Objects of a JSON schema that name properties have no others, as in vLLM and llama.cpp, unless
// the schema or "disable_additional_properties": false says so.
void read_structured_outputs(JsonFields& fields, bool strict,
                             std::optional<StructuredOutputs>* outputs);

// One form alone: {"type": "json_schema", "schema": {...}} and the like, where `schema_holder` is
// an object with "schema" that the form may have it in; {"type": "json_object", "schema": {...}},
// as llama.cpp and others know it, means the same, and so does TGI's {"type": "json", "value": {}}.
// {"type": "regex", "pattern": "..."} (Together) and {"type": "grammar", "grammar": "..."}
// (Fireworks) may have their text in "value" (TGI), too. Messages start with `name`.
Status read_format(const nlohmann::ordered_json& format, const std::string& name,
                   const nlohmann::ordered_json& schema_holder,
                   std::optional<StructuredOutputs>* outputs);

}  // namespace foretoken
