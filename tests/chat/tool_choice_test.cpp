#include "chat/tool_choice.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string error(const char* choice, const char* tools) {
  const Result<std::string> read = read_tool_choice(json::parse(choice), json::parse(tools));
  return read.ok() ? "" : read.status().message();
}

TEST(ToolChoice, Reads) {
  const json tools = sample_tools();
  EXPECT_EQ(read_tool_choice(nullptr, tools).value(), "auto");
  EXPECT_EQ(read_tool_choice(nullptr, nullptr).value(), "none");
  EXPECT_EQ(read_tool_choice("none", nullptr).value(), "none");
  EXPECT_EQ(read_tool_choice("required", tools).value(), "required");
  const json named = {{"type", "function"}, {"function", {{"name", "now"}}}};
  EXPECT_EQ(read_tool_choice(named, tools).value(), "now");
}

TEST(ToolChoice, Errors) {
  const char* tools = R"([{"type": "function", "function": {"name": "f"}}])";
  EXPECT_NE(error("\"required\"", "null").find("needs 'tools'"), std::string::npos);
  EXPECT_EQ(read_tool_choice("auto", json::array()).value(), "none");
  EXPECT_NE(error("\"any\"", tools).find("must be"), std::string::npos);
  EXPECT_NE(error("{}", tools).find("must be"), std::string::npos);
  EXPECT_NE(error(R"({"type": "function", "function": {"name": "g"}})", tools).find("'g'"),
            std::string::npos);
  EXPECT_NE(error("\"auto\"", "{}").find("array"), std::string::npos);
  EXPECT_NE(error("\"auto\"", "[1]").find("entry 1"), std::string::npos);
  EXPECT_NE(error("\"auto\"", R"([{"function": {}}])").find("no 'name'"), std::string::npos);
  EXPECT_NE(error("\"auto\"", R"([{"function": {"name": "f", "parameters": 1}}])").find("schema"),
            std::string::npos);
}

TEST(ToolChoice, RequiredIsAnArrayOfCalls) {
  ChatParserOptions options = options_of("hermes");
  options.tool_choice = "required";
  const auto outputs = tool_choice_outputs(&options);
  ASSERT_TRUE(outputs.ok() && outputs.value());
  const json schema = json::parse(outputs.value()->json);
  EXPECT_EQ(schema["type"], "array");
  EXPECT_EQ(schema["minItems"], 1);
  EXPECT_FALSE(schema.contains("maxItems"));
  const json& first = schema["items"]["anyOf"][0];
  EXPECT_EQ(first["properties"]["name"]["enum"], json::array({"get_weather"}));
  EXPECT_EQ(first["properties"]["parameters"]["required"], json::array({"city"}));
  EXPECT_EQ(first["required"], json::array({"name", "parameters"}));
  EXPECT_EQ(schema["items"]["anyOf"][1]["properties"]["parameters"]["type"], "object");
  options.parallel_tool_calls = false;
  EXPECT_EQ(json::parse(tool_choice_outputs(&options).value()->json)["maxItems"], 1);
}

TEST(ToolChoice, NamedIsTheParameters) {
  ChatParserOptions options = options_of("");
  options.tool_choice = "get_weather";
  EXPECT_EQ(json::parse(tool_choice_outputs(&options).value()->json),
            sample_tools()[0]["function"]["parameters"]);
  options.tool_choice = "auto";
  EXPECT_FALSE(tool_choice_outputs(&options).value().has_value());
  options.tool_choice = "nope";
  EXPECT_EQ(tool_choice_outputs(&options).status().code(), StatusCode::kInvalidArgument);
}

// Each function's own: two may define one name in two ways.
TEST(ToolChoice, ReferencesFollowTheirSchemas) {
  ChatParserOptions options = options_of("");
  options.tool_choice = "required";
  options.tools = json::parse(R"([
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object",
      "properties": {"a": {"$ref": "#/$defs/A"}, "enum": {"$ref": "#"}},
      "default": {"$ref": "#"}, "$defs": {"A": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "g", "parameters": {
      "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "other.json#/A"}},
      "definitions": {"A": {"type": "string"}}}}},
    {"type": "function", "function": {"name": "h", "parameters": {"$id": "urn:h",
      "properties": {"a": {"$ref": "#/$defs/A"}}}}}])");
  const json schema = json::parse(tool_choice_outputs(&options).value()->json);
  const auto parameters = [&](int i) {
    return schema["items"]["anyOf"][i]["properties"]["parameters"];
  };
  EXPECT_EQ(parameters(0)["properties"]["a"]["$ref"],
            "#/items/anyOf/0/properties/parameters/$defs/A");
  EXPECT_EQ(parameters(0)["properties"]["enum"]["$ref"], "#/items/anyOf/0/properties/parameters");
  EXPECT_EQ(parameters(0)["default"]["$ref"], "#");
  EXPECT_EQ(parameters(0)["$defs"]["A"]["type"], "integer");
  EXPECT_EQ(parameters(1)["properties"]["a"]["$ref"],
            "#/items/anyOf/1/properties/parameters/definitions/A");
  EXPECT_EQ(parameters(1)["properties"]["b"]["$ref"], "other.json#/A");
  EXPECT_EQ(parameters(2)["properties"]["a"]["$ref"], "#/$defs/A");
}

TEST(ToolChoice, BehindReasoning) {
  ChatParserOptions options = options_of("hermes", "qwen3");
  options.tool_choice = "now";
  EXPECT_TRUE(tool_choice_outputs(&options).value()->reasoning_ends.empty());
  EXPECT_FALSE(options.drop_leading_space);
  options.starts_in_reasoning = true;
  const StructuredOutputs outputs = *tool_choice_outputs(&options).value();
  EXPECT_FALSE(outputs.json.empty());
  EXPECT_EQ(outputs.reasoning_ends, std::vector<std::string>{"</think>"});
  EXPECT_TRUE(outputs.space_after_reasoning && options.drop_leading_space);
}

// White space between the reasoning and a form is layout where no form of its kind begins with it.
TEST(ToolChoice, LayoutBehindReasoning) {
  ChatParserOptions options = options_of("hermes", "qwen3");
  options.starts_in_reasoning = true;
  const auto has_layout = [&](const StructuredOutputs& wanted) {
    const StructuredOutputs placed = after_reasoning(wanted, &options);
    EXPECT_EQ(placed.reasoning_ends.size(), 1u);
    EXPECT_EQ(placed.space_after_reasoning, options.drop_leading_space);
    return placed.space_after_reasoning;
  };
  StructuredOutputs choice;
  choice.choice = {"yes", "n\"o"};
  EXPECT_TRUE(has_layout(choice));
  choice.choice.push_back(" maybe");
  EXPECT_FALSE(has_layout(choice));
  StructuredOutputs regex;
  regex.regex = "a+";
  EXPECT_FALSE(has_layout(regex));
  StructuredOutputs object;
  object.json_object = true;
  EXPECT_TRUE(has_layout(object));
}

}  // namespace
}  // namespace foretoken
