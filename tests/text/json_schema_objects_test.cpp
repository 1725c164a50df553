#include "text/json_schema.h"

#include "text/schema_forms.h"

namespace foretoken {
namespace {

TEST(JsonSchemaObjects, ClosedOnesStayOpenWhereTheyMust) {
  const struct {
    const char* schema;
    const char* value;
    bool fits;
  } cases[] = {{R"({"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"properties":{"a":{"type":"null"}}}},
           "allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"null"}}}],"type":"object"})",
                R"({"a": null, "b": null})", true},
               {R"({"type":"object","properties":{"a":{}},"required":["b"]})", R"({"b": 1})", true},
               {R"({"type":"object","properties":{"a":{}},"required":["a"],"minProperties":2})",
                R"({"a":1, "b": 1})", true},
               {R"({"type":"object","properties":{"a":{}},"additionalProperties":true})",
                R"({"b":1})", true},
               {R"({"type":"object"})", R"({"b": 1})", true},
               {R"({"$defs":{"A":{"type":"object","properties":{"a":{}}}},"$ref":"#/$defs/A"})",
                R"({"b": 1})", false},
               {R"({"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"null"}]})",
                R"({"b": 1})", false},
               {R"({"allOf":[{"type":"object","properties":{"a":{}}}]})", R"({"b": 1})", false},
               {R"({"type":"array","items":{"type":"object","properties":{"a":{}}}})",
                R"([{"b": 1}])", false}};
  const GrammarRig rig;
  for (const auto& one : cases) {
    StructuredOutputs wanted = form_of_schema(one.schema, true);
    for (const bool closes : {true, false}) {
      wanted.disable_additional_properties = closes;
      const auto grammar = rig.compile(wanted);
      ASSERT_TRUE(grammar.ok()) << one.schema << ": " << grammar.status().message();
      EXPECT_EQ(rig.accepts(*grammar.value(), one.value), one.fits || !closes) << one.schema;
    }
  }
}

// Each schema with values that fit and values that do not.
TEST(JsonSchemaObjects, PropertiesAreCountedThoughSomeMayBeMissing) {
  const struct {
    const char* counts;
    Strings fit;
    Strings others;
  } cases[] = {
      {R"("minProperties":1)", {R"({"a":1})", R"({"c":1})", R"({"a":1,"b":1,"c":1})"}, {"{}"}},
      {R"("minProperties":2)", {R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"}, {R"({"b":1})"}},
      {R"("maxProperties":1)", {"{}", R"({"b":1})"}, {R"({"a":1,"b":1})"}},
      {R"("minProperties":2,"maxProperties":2,"required":["b"])",
       {R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
       {R"({"b":1})", R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"}},
      {R"("minProperties":1,"required":["b"])", {R"({"b":1})"}, {R"({"a":1})"}},
  };
  const GrammarRig rig;
  for (const auto& one : cases) {
    const std::string schema =
        R"({"type":"object","properties":{"a":{},"b":{},"c":{}},)" + std::string(one.counts) + "}";
    EXPECT_EQ(left_out(schema), Strings());
    const auto grammar = rig.compile(form_of_schema(schema, true));
    ASSERT_TRUE(grammar.ok()) << schema << grammar.status().message();
    for (const auto& text : one.fit) EXPECT_TRUE(rig.accepts(*grammar.value(), text)) << schema;
    for (const auto& text : one.others) EXPECT_FALSE(rig.accepts(*grammar.value(), text)) << schema;
  }
}

// Other properties, or another schema of the same object: the counts go, and nothing else.
TEST(JsonSchemaObjects, CountsBesideOtherPropertiesAreLeftOut) {
  const std::string named = R"("properties":{"a":{"type":"null"},"b":{}},"minProperties":2)";
  const std::string open = R"("additionalProperties":{"type":"null"},"maxProperties":3)";
  const std::string other = R"({"properties":{"c":{"type":"null"}}})";
  const GrammarRig rig;
  for (const std::string& schema :
       {"{" + open + "," + named + "}", R"({"allOf":[{)" + named + "}," + other + "]}"}) {
    const Strings notes = left_out(schema);
    ASSERT_FALSE(notes.empty()) << schema;
    for (const auto& note : notes) EXPECT_NE(note.find("Properties' at"), std::string::npos);
    const auto grammar = rig.compile(form_of_schema(schema, false));
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    EXPECT_TRUE(rig.accepts(*grammar.value(), R"({"a":null,"c":null})"));
    EXPECT_FALSE(rig.accepts(*grammar.value(), R"({"a":1})"));
  }
}

}  // namespace
}  // namespace foretoken
