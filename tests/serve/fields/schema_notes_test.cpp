#include "serve/fields/schema_notes.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Strings = std::vector<std::string>;

StructuredOutputs lenient(const char* schema) {
  StructuredOutputs form;
  form.json = schema;
  form.strict_schemas = false;
  return form;
}

TEST(SchemaNotes, OfAForm) {
  Strings warnings;
  EXPECT_TRUE(
      note_schemas(lenient(R"({"type":"array","uniqueItems":true})"), "'x'", &warnings).ok());
  EXPECT_EQ(warnings, Strings{"'x': 'uniqueItems' at $ is not enforced"});
  const Status nothing = note_schemas(lenient(R"({"uniqueItems":true})"), "'x'", &warnings);
  EXPECT_TRUE(nothing.message().starts_with("'x': nothing of the JSON schema"))
      << nothing.message();
  // The engine refuses these itself.
  StructuredOutputs strict = lenient(R"({"uniqueItems":true})");
  strict.strict_schemas = true;
  EXPECT_TRUE(note_schemas(strict, "'x'", &warnings).ok());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(SchemaNotes, OfAStructuralTag) {
  StructuredOutputs form;
  form.strict_schemas = false;
  form.structural_tag = R"({"triggers":["<"],"structures":[{"begin":"<a>","end":"</a>","schema":{}},
      {"begin":"<b>","end":"</b>","schema":{"type":"array","contains":{"type":"null"}}}]})";
  Strings warnings;
  EXPECT_TRUE(note_schemas(form, "'x'", &warnings).ok());
  EXPECT_EQ(warnings, Strings{"'x' structures[1].schema: 'contains' at $ is not enforced"});
  warnings.clear();
  form.structural_tag = R"({"format":{"type":"sequence","elements":[{"type":"any_text"},
      {"type":"json_schema","json_schema":{"type":"array","contains":{"type":"null"}}}]}})";
  EXPECT_TRUE(note_schemas(form, "'x'", &warnings).ok());
  EXPECT_EQ(warnings,
            Strings{"'x' format.elements[1].json_schema: 'contains' at $ is not enforced"});
  form.structural_tag = "[";
  EXPECT_TRUE(note_schemas(form, "'x'", &warnings).ok());
}

TEST(SchemaNotes, OfForcedTools) {
  const json tools = json::parse(R"([
      {"function": {"name": "f", "parameters": {"uniqueItems": true, "properties": {
          "a": {"type": "array", "uniqueItems": true}}}}},
      {"function": {"name": "g", "parameters": {"properties": {
          "l": {"contains": {"type": "null"}}}}}},
      {"function": {"name": "h"}}])");
  const auto notes = [&](const char* choice) {
    Strings warnings;
    EXPECT_TRUE(note_tool_schemas(tools, choice, &warnings).ok());
    return warnings;
  };
  EXPECT_EQ(notes("auto"), Strings());
  EXPECT_EQ(notes("none"), Strings());
  EXPECT_EQ(notes("h"), Strings());
  EXPECT_EQ(notes("g"),
            Strings{"'tools' entry 2 ('g'): 'contains' at $.properties.l is not enforced"});
  EXPECT_EQ(notes("required").size(), 2u);
}

}  // namespace
}  // namespace foretoken
