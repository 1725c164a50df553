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
  EXPECT_NE(error("\"auto\"", "null").find("needs 'tools'"), std::string::npos);
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
  const auto outputs = tool_choice_outputs(options);
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
  EXPECT_EQ(json::parse(tool_choice_outputs(options).value()->json)["maxItems"], 1);
}

TEST(ToolChoice, NamedIsTheParameters) {
  ChatParserOptions options = options_of("");
  options.tool_choice = "get_weather";
  EXPECT_EQ(json::parse(tool_choice_outputs(options).value()->json),
            sample_tools()[0]["function"]["parameters"]);
  options.tool_choice = "auto";
  EXPECT_FALSE(tool_choice_outputs(options).value().has_value());
  options.tool_choice = "nope";
  EXPECT_EQ(tool_choice_outputs(options).status().code(), StatusCode::kInvalidArgument);
}

TEST(ToolChoice, DefinitionsMoveToTheTop) {
  ChatParserOptions options = options_of("");
  options.tool_choice = "required";
  options.tools = json::parse(R"([
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object",
      "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "g", "parameters": {
      "$defs": {"A": {"type": "integer"}}}}}])");
  const json schema = json::parse(tool_choice_outputs(options).value()->json);
  EXPECT_EQ(schema["$defs"]["A"]["type"], "integer");
  EXPECT_FALSE(schema["items"]["anyOf"][0]["properties"]["parameters"].contains("$defs"));
  options.tools[1]["function"]["parameters"]["$defs"]["A"]["type"] = "string";
  EXPECT_NE(tool_choice_outputs(options).status().message().find("'$defs' A"), std::string::npos);
}

TEST(ToolChoice, BehindReasoning) {
  ChatParserOptions options = options_of("hermes", "qwen3");
  options.tool_choice = "now";
  EXPECT_FALSE(tool_choice_outputs(options).value()->json.empty());
  options.starts_in_reasoning = true;
  const StructuredOutputs outputs = *tool_choice_outputs(options).value();
  EXPECT_TRUE(outputs.json.empty());
  EXPECT_NE(outputs.grammar.find(R"(thought[lazy]: /(.|\n)*(<\/think>)/)"), std::string::npos)
      << outputs.grammar;
  EXPECT_NE(outputs.grammar.find("answer: %json {"), std::string::npos);
  StructuredOutputs choice;
  choice.choice = {"yes", "n\"o"};
  EXPECT_NE(after_reasoning(choice, options).value().grammar.find(R"(answer: "yes" | "n\"o")"),
            std::string::npos);
  StructuredOutputs regex;
  regex.regex = "a+";
  EXPECT_EQ(after_reasoning(regex, options).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace foretoken
