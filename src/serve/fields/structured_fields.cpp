#include "serve/fields/structured_fields.h"

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Whether an object has keywords that say what a JSON schema allows.
bool has_schema_keywords(const json& object) {
  constexpr const char* kKeywords[] = {"type",  "properties", "items", "$ref", "anyOf", "oneOf",
                                       "allOf", "enum",       "const", "not",  "if",    "$defs"};
  return object.is_object() && std::ranges::any_of(kKeywords, [&](const char* keyword) {
           return object.contains(keyword);
         });
}

// The schema in OpenAI's {"name", "schema"} or {"type": "json_schema", "json_schema": ...}, which
// clients also send where a schema alone belongs; another value as it is.
const json& schema_within(const json& value) {
  if (!value.is_object()) return value;
  const auto inner = value.find("json_schema");
  if (inner != value.end() && inner->is_object()) return schema_within(*inner);
  const auto schema = value.find("schema");
  const bool is_wrapped = schema != value.end() && schema->is_object() && value.contains("name");
  return is_wrapped && !has_schema_keywords(value) ? *schema : value;
}

// A JSON schema as text; it may be given as text, too.
bool read_schema(const json& whole, std::string* schema) {
  const json& value = schema_within(whole);
  if (value.is_string()) {
    *schema = value.get<std::string>();
    return !schema->empty();
  }
  if (!value.is_object() && !value.is_boolean()) return false;
  *schema = json_text(value);
  return true;
}

void read_response_format(JsonFields& fields, const json& format,
                          std::optional<StructuredOutputs>* outputs) {
  if (!format.is_object()) return fields.wrong_type("response_format", "an object", format);
  const auto found = format.find("json_schema");
  const Status status =
      read_format(format, "'response_format'", found == format.end() ? json() : *found, outputs);
  if (!status.ok()) fields.fail(status.message());
}

// vLLM's fields before "structured_outputs".
constexpr std::pair<const char*, const char*> kOldNames[] = {
    {"guided_json", "json"},
    {"guided_regex", "regex"},
    {"guided_choice", "choice"},
    {"guided_grammar", "grammar"},
    {"guided_json_object", "json_object"},
    {"guided_whitespace_pattern", "whitespace_pattern"},
};

// llama.cpp's fields, which its clients also send without a value, and SGLang's.
constexpr std::pair<const char*, const char*> kPlainNames[] = {
    {"json_schema", "json"}, {"grammar", "grammar"}, {"regex", "regex"}, {"ebnf", "grammar"}};

// `*count` receives how many of them say something.
json read_plain_names(JsonFields& fields, int* count) {
  json object;
  for (const auto& [name, ours] : kPlainNames) {
    const json* value = fields.raw(name);
    if (value == nullptr || *value == "") continue;
    // A schema of nothing; a grammar is a text.
    if (ours == std::string("json") && value->is_object() && value->empty()) continue;
    object[ours] = *value;
    ++*count;
  }
  return object;
}

// Whether `form` says all that `old` does: clients send both to servers of any age.
bool says_the_same(const json& form, const json& old) {
  for (const auto& [name, value] : old.items()) {
    if (!form.is_object() || form.value(name, json()) != value) return false;
  }
  return true;
}

// Old fields as the object that replaced them; null where there is none.
json read_old_names(JsonFields& fields) {
  static std::atomic<bool> told{false};
  json object;
  fields.ignore({"guided_decoding_backend"});
  for (const auto& [old, name] : kOldNames) {
    const json* value = fields.raw(old);
    if (value == nullptr || *value == false) continue;
    object[name] = *value;
    if (told.exchange(true)) continue;
    FT_LOG(warn, "'{}' is an old name; clients should send \"structured_outputs\": {{\"{}\": ...}}",
           old, name);
  }
  return object;
}

// Whether `object` says what the output is, rather than how it is written.
bool has_form(const json& object) {
  if (!object.is_object()) return true;
  for (const char* name : {"json", "regex", "choice", "grammar", "structural_tag"}) {
    if (object.contains(name) && !object[name].is_null()) return true;
  }
  return object.value("json_object", json()) == true;
}

void read_vllm_form(JsonFields& fields, const json& object, StructuredOutputs* outputs) {
  if (!object.is_object()) {
    return fields.wrong_type("structured_outputs", "an object like {\"regex\": \"[0-9]+\"}",
                             object);
  }
  JsonFields inner(object, "'structured_outputs'", fields.notes());
  if (const json* schema = inner.raw("json"); schema != nullptr) {
    if (!read_schema(*schema, &outputs->json)) {
      inner.wrong_type("json", "a JSON schema, an object", *schema);
    }
    outputs->disable_additional_properties = true;
  }
  inner.read("json_object", &outputs->json_object);
  inner.read("regex", &outputs->regex);
  inner.read("choice", &outputs->choice);
  inner.read("grammar", &outputs->grammar);
  if (const json* tag = inner.raw("structural_tag"); tag != nullptr) {
    outputs->structural_tag = tag->is_string() ? tag->get<std::string>() : json_text(*tag);
    outputs->disable_additional_properties = true;
  }
  inner.read("disable_any_whitespace", &outputs->disable_any_whitespace);
  inner.read("disable_additional_properties", &outputs->disable_additional_properties);
  inner.read("whitespace_pattern", &outputs->whitespace_pattern);
  inner.read("strict_schemas", &outputs->strict_schemas);
  inner.ignore({"disable_fallback"});
  inner.check_unread();
  const int forms = (outputs->json.empty() ? 0 : 1) + (outputs->json_object ? 1 : 0) +
                    (outputs->regex.empty() ? 0 : 1) + (outputs->choice.empty() ? 0 : 1) +
                    (outputs->grammar.empty() ? 0 : 1) + (outputs->structural_tag.empty() ? 0 : 1);
  if (forms != 1) {
    inner.fail("give exactly one of json, json_object, regex, choice, grammar and structural_tag");
  }
  if (!inner.status().ok()) fields.fail(inner.status().message());
}

// The text of a regex or grammar that `format` holds by one of the names of `type`: TGI's,
// Together's, Fireworks' and LMDeploy's; null where `type` is another.
const std::vector<const char*>* text_names(const json& type) {
  static const std::vector<const char*> regex = {"pattern", "regex", "regex_schema", "value"};
  static const std::vector<const char*> grammar = {"grammar", "value"};
  if (type == "regex" || type == "regex_schema") return &regex;
  return type == "grammar" ? &grammar : nullptr;
}

Status read_text_form(const json& format, const std::string& name, const json& type,
                      StructuredOutputs* form) {
  std::string& text = type == "grammar" ? form->grammar : form->regex;
  for (const char* member : *text_names(type)) {
    const auto found = format.find(member);
    if (found != format.end() && found->is_string()) text = found->get<std::string>();
  }
  if (!text.empty()) return {};
  return invalid_argument(name + ": type " + type.dump() + " needs " +
                          (type == "grammar" ? "a 'grammar'" : "a 'pattern'") + ", a text");
}

}  // namespace

Status read_format(const json& format, const std::string& name, const json& schema_holder,
                   std::optional<StructuredOutputs>* outputs) {
  const auto found = format.find("type");
  const json type = found == format.end() ? json() : *found;
  if (type == "text") return {};
  StructuredOutputs form;
  const auto schema_in = [](const json& holder) {
    const auto schema = holder.is_object() ? holder.find("schema") : holder.end();
    return schema == holder.end() || schema->is_null() ? json() : *schema;
  };
  json schema = schema_in(schema_holder);
  if (schema.is_null()) schema = schema_in(format);
  // TensorRT-LLM has it without anything around.
  if (schema.is_null() && has_schema_keywords(schema_holder)) schema = schema_holder;
  if (schema.is_null() && format.contains("value")) schema = format["value"];  // TGI's
  if (type == "json_object" && schema.is_null()) {
    form.json_object = true;
  } else if (type == "json_object" || type == "json_schema" || type == "json") {
    if (!read_schema(schema, &form.json)) {
      return invalid_argument(name + ": type " + type.dump() + " needs a 'schema', an object");
    }
    form.disable_additional_properties = true;
  } else if (type == "structural_tag") {
    form.structural_tag = json_text(format);
    form.disable_additional_properties = true;
  } else if (text_names(type) != nullptr) {
    FT_RETURN_IF_ERROR(read_text_form(format, name, type, &form));
  } else {
    return invalid_argument(name +
                            ": 'type' must be \"text\", \"json_object\", \"json_schema\", "
                            "\"structural_tag\", \"regex\" or \"grammar\"");
  }
  *outputs = std::move(form);
  return {};
}

void read_structured_outputs(JsonFields& fields, bool strict,
                             std::optional<StructuredOutputs>* outputs) {
  const json* format = fields.raw("response_format");
  const json* form = fields.raw("structured_outputs");
  const json old = read_old_names(fields);
  int num_plain = 0;
  const json plain = read_plain_names(fields, &num_plain);
  if (!old.is_null()) {
    if (form != nullptr && !says_the_same(*form, old)) {
      return fields.fail("give 'structured_outputs' or the older 'guided_...' fields, not both");
    }
    if (form == nullptr) form = &old;
  }
  if (num_plain > 0) {
    if (form != nullptr || num_plain > 1) {
      return fields.fail(
          "give one of 'structured_outputs', 'json_schema', 'grammar', 'regex' and 'ebnf', not "
          "several");
    }
    form = &plain;
  }
  if (format != nullptr) read_response_format(fields, *format, outputs);
  if (outputs->has_value()) outputs->value().strict_schemas = strict;
  if (form == nullptr) return;
  if (outputs->has_value() && has_form(*form)) {
    return fields.fail(
        "give 'response_format' or 'structured_outputs' (or 'json_schema', 'grammar', 'regex', "
        "'ebnf' "
        "and the older 'guided_...'), not both");
  }
  // Beside 'response_format' it may say how the output is written, as in vLLM.
  if (!outputs->has_value()) outputs->emplace().strict_schemas = strict;
  read_vllm_form(fields, *form, &outputs->value());
}

}  // namespace foretoken
