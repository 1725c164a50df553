#include "serve/fields/structured_fields.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status read_structured(const char* text, std::optional<StructuredOutputs>* outputs) {
  const json body = json::parse(text);
  JsonFields fields(body, "");
  read_structured_outputs(fields, false, outputs);
  return fields.status();
}

StructuredOutputs form(const char* text) {
  std::optional<StructuredOutputs> outputs;
  const Status status = read_structured(text, &outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(outputs.has_value()) << text;
  return outputs.value_or(StructuredOutputs());
}

void expect_structured_error(const char* text, const std::string& part) {
  std::optional<StructuredOutputs> outputs;
  const Status status = read_structured(text, &outputs);
  EXPECT_NE(status.message().find(part), std::string::npos) << text << ": " << status.message();
}

TEST(StructuredFields, ResponseFormats) {
  std::optional<StructuredOutputs> none;
  EXPECT_TRUE(read_structured(R"({"response_format": {"type": "text"}})", &none).ok());
  EXPECT_FALSE(none.has_value());
  EXPECT_TRUE(form(R"({"response_format": {"type": "json_object"}})").json_object);
  EXPECT_EQ(form(R"({"response_format": {"type": "json_schema", "json_schema":
                     {"name": "x", "strict": true, "schema": {"type": "integer"}}}})")
                .json,
            R"({"type":"integer"})");
  EXPECT_NE(form(R"({"response_format": {"type": "structural_tag", "triggers": []}})")
                .structural_tag.find("triggers"),
            std::string::npos);
  EXPECT_TRUE(form(R"({"response_format": {"type": "structural_tag", "format": {}}})")
                  .disable_additional_properties);
}

// Clients put OpenAI's object where a schema alone belongs, and, for TensorRT-LLM, the other way.
TEST(StructuredFields, SchemasWithMoreOrLessAround) {
  for (const char* body :
       {R"({"guided_json": {"name": "x", "schema": {"enum": [1]}, "strict": true}})",
        R"({"structured_outputs": {"json": {"name": "x", "schema": {"enum": [1]}}}})",
        R"({"json_schema": {"type": "json_schema", "json_schema": {"name": "x",
            "schema": {"enum": [1]}}}})",
        R"({"response_format": {"type": "json_schema", "json_schema": {"enum": [1]}}})"}) {
    EXPECT_EQ(form(body).json, R"({"enum":[1]})") << body;
  }
  // A schema of which 'schema' is no more than a name that the object may have.
  EXPECT_NE(
      form(R"({"guided_json": {"name": 1, "schema": {}, "type": "object"}})").json.find("\"type\""),
      std::string::npos);
  expect_structured_error(
      R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}})",
      "needs a 'schema'");
}

// As llama.cpp and others have it.
TEST(StructuredFields, SchemasOfObjectFormats) {
  const char* schema = R"({"type":"object","required":["a"]})";
  EXPECT_EQ(form(R"({"response_format": {"type": "json_object",
                     "schema": {"type": "object", "required": ["a"]}}})")
                .json,
            schema);
  EXPECT_EQ(form(R"({"response_format": {"type": "json_schema",
                     "schema": {"type": "object", "required": ["a"]}}})")
                .json,
            schema);
  EXPECT_TRUE(form(R"({"response_format": {"type": "json_object", "schema": null}})").json_object);
  expect_structured_error(R"({"response_format": {"type": "json_object", "schema": 3}})",
                          "needs a 'schema'");
}

// TGI's, Together's, Fireworks' and LMDeploy's.
TEST(StructuredFields, FormatsOfOtherServers) {
  const char* regexes[] = {R"({"response_format": {"type": "regex", "pattern": "[0-9]"}})",
                           R"({"response_format": {"type": "regex", "value": "[0-9]"}})",
                           R"({"response_format": {"type": "regex_schema",
                               "regex_schema": "[0-9]"}})"};
  for (const char* text : regexes) EXPECT_EQ(form(text).regex, "[0-9]");
  EXPECT_EQ(
      form(R"({"response_format": {"type": "grammar", "grammar": "root ::= \"a\""}})").grammar,
      "root ::= \"a\"");
  for (const char* type : {"json", "json_object"}) {
    const json body = {{"response_format", {{"type", type}, {"value", {{"type", "integer"}}}}}};
    EXPECT_EQ(form(body.dump().c_str()).json, R"({"type":"integer"})");
  }
  expect_structured_error(R"({"response_format": {"type": "regex"}})", "needs a 'pattern'");
  expect_structured_error(R"({"response_format": {"type": "grammar", "grammar": 3}})",
                          "needs a 'grammar'");
}

TEST(StructuredFields, LlamaCppsFields) {
  EXPECT_EQ(form(R"({"json_schema": {"type": "null"}, "grammar": ""})").json, R"({"type":"null"})");
  EXPECT_EQ(form(R"({"grammar": "root ::= \"a\"", "json_schema": {}})").grammar, "root ::= \"a\"");
  std::optional<StructuredOutputs> none;
  EXPECT_TRUE(read_structured(R"({"grammar": "", "json_schema": null})", &none).ok());
  EXPECT_FALSE(none.has_value());
  expect_structured_error(R"({"grammar": "root ::= \"a\"", "json_schema": {"type": "null"}})",
                          "one of");
  expect_structured_error(R"({"grammar": "root ::= \"a\"", "structured_outputs": {"regex": "a"}})",
                          "one of");
  expect_structured_error(R"({"grammar": "a", "response_format": {"type": "json_object"}})",
                          "not both");
}

TEST(StructuredFields, OptionsMayStandBesideResponseFormat) {
  const StructuredOutputs both = form(R"({"response_format": {"type": "json_object"},
      "structured_outputs": {"disable_any_whitespace": true, "regex": null}})");
  EXPECT_TRUE(both.json_object && both.disable_any_whitespace);
  expect_structured_error(R"({"response_format": {"type": "json_object"}, "structured_outputs":
                  {"regex": "a"}})",
                          "not both");
  expect_structured_error(R"({"structured_outputs": {"disable_any_whitespace": true}})",
                          "exactly one");
}

TEST(StructuredFields, SchemasAreStrictWhereOneSaysSo) {
  EXPECT_FALSE(form(R"({"response_format": {"type": "json_object"}})").strict_schemas);
  EXPECT_TRUE(
      form(R"({"structured_outputs": {"json": {}, "strict_schemas": true}})").strict_schemas);
  const json body = json::parse(R"({"structured_outputs": {"json": {}}})");
  JsonFields fields(body, "");
  std::optional<StructuredOutputs> outputs;
  read_structured_outputs(fields, true, &outputs);
  EXPECT_TRUE(outputs->strict_schemas);
}

TEST(StructuredFields, ObjectsAreClosedUnlessOneSaysSo) {
  const auto closes = [](const std::string& body) {
    return form(body.c_str()).disable_additional_properties;
  };
  EXPECT_TRUE(closes(R"({"structured_outputs": {"json": {"type": "object"}}})"));
  EXPECT_TRUE(closes(R"({"json_schema": {"type": "object"}})"));
  EXPECT_TRUE(closes(R"({"guided_json": {"type": "object"}})"));
  for (const char* type : {"json_schema", "json_object"}) {
    EXPECT_TRUE(closes(R"({"response_format": {"schema": {"type": "object"}, "type": ")" +
                       std::string(type) + R"("}})"));
  }
  EXPECT_FALSE(
      closes(R"({"structured_outputs": {"json": {}, "disable_additional_properties": false}})"));
  EXPECT_FALSE(closes(R"({"structured_outputs": {"regex": "a"}})"));
  EXPECT_FALSE(closes(R"({"response_format": {"type": "json_object"}})"));
}

TEST(StructuredFields, VllmsForms) {
  EXPECT_EQ(form(R"({"structured_outputs": {"json": {"type": "null"}}})").json,
            R"({"type":"null"})");
  EXPECT_EQ(form(R"({"structured_outputs": {"json": "{}"}})").json, "{}");
  EXPECT_EQ(form(R"({"structured_outputs": {"regex": "[a-z]+"}})").regex, "[a-z]+");
  EXPECT_EQ(form(R"({"structured_outputs": {"choice": ["a", "b"]}})").choice.size(), 2u);
  EXPECT_EQ(form(R"({"structured_outputs": {"grammar": "start: \"a\""}})").grammar, "start: \"a\"");
  const StructuredOutputs all = form(
      R"({"structured_outputs": {"json_object": true, "disable_any_whitespace": true,
          "whitespace_pattern": " ?", "disable_additional_properties": true}})");
  EXPECT_TRUE(all.json_object && all.disable_any_whitespace && all.disable_additional_properties);
  EXPECT_EQ(all.whitespace_pattern, " ?");
}

TEST(StructuredFields, VllmsOlderFields) {
  EXPECT_EQ(form(R"({"guided_json": {"type": "null"}, "guided_decoding_backend": "auto"})").json,
            R"({"type":"null"})");
  EXPECT_EQ(form(R"({"guided_regex": "[a-z]+", "guided_json": null})").regex, "[a-z]+");
  EXPECT_EQ(form(R"({"guided_choice": ["a", "b"]})").choice.size(), 2u);
  EXPECT_EQ(form(R"({"guided_grammar": "start: \"a\""})").grammar, "start: \"a\"");
  EXPECT_TRUE(form(R"({"guided_json_object": true})").json_object);
  EXPECT_EQ(form(R"({"guided_json": "{}", "guided_whitespace_pattern": " ?"})").whitespace_pattern,
            " ?");
  std::optional<StructuredOutputs> none;
  EXPECT_TRUE(
      read_structured(R"({"guided_json_object": false, "guided_choice": null})", &none).ok());
  EXPECT_FALSE(none.has_value());
  expect_structured_error(R"({"guided_regex": "a", "guided_choice": ["b"]})", "exactly one of");
  expect_structured_error(R"({"guided_regex": "a", "structured_outputs": {"regex": "b"}})",
                          "not both");
  // As guidance sends it, to servers of any age.
  EXPECT_EQ(form(R"({"guided_regex": "a", "structured_outputs": {"regex": "a"}})").regex, "a");
  // SGLang's names.
  EXPECT_EQ(form(R"({"regex": "[ab]"})").regex, "[ab]");
  EXPECT_EQ(form(R"({"ebnf": "root ::= \"a\""})").grammar, "root ::= \"a\"");
  expect_structured_error(R"({"ebnf": "a", "grammar": "a"})", "not several");
  expect_structured_error(R"({"guided_regex": "a", "response_format": {"type": "json_object"}})",
                          "not both");
  expect_structured_error(R"({"guided_regex": 3})", "a string");
}

TEST(StructuredFields, ErrorsNameTheField) {
  expect_structured_error(R"({"response_format": 3})", "'response_format' must be an object");
  expect_structured_error(R"({"response_format": {"type": "xml"}})",
                          "'response_format': 'type' must be");
  expect_structured_error(R"({"response_format": {"type": "json_schema"}})", "needs a 'schema'");
  expect_structured_error(R"({"structured_outputs": {}})", "exactly one of");
  expect_structured_error(R"({"structured_outputs": {"regex": "a", "choice": ["b"]}})",
                          "exactly one of");
  expect_structured_error(R"({"structured_outputs": {"json": 3}})", "a JSON schema, an object");
  expect_structured_error(R"({"structured_outputs": {"regexp": "a"}})", "did you mean 'regex'?");
  expect_structured_error(R"({"structured_outputs": {"regex": "a"}, "response_format":
                   {"type": "json_object"}})",
                          "not both");
}

}  // namespace
}  // namespace foretoken
