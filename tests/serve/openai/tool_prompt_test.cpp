#include "serve/openai/tool_prompt.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

OpenAiRequest request_with_tools() {
  OpenAiRequest request;
  request.messages_json = R"([{"role": "user", "content": "x"}])";
  request.arguments_json = R"({"tools": [{"type": "function", "function": {"name": "f"}}]})";
  request.parser.tool_parser = "auto";
  request.parser.reasoning_parser = "auto";
  return request;
}

TEST(ToolPrompt, TemplatesNameTheParsers) {
  OpenAiRequest request = request_with_tools();
  EXPECT_TRUE(sends_tools(request));
  ChatTemplateTraits traits;
  traits.source = "{{ tools }} <tool_call> </think>";
  fit_tools(&traits, &request);
  EXPECT_EQ(request.parser.tool_parser, "hermes");
  EXPECT_EQ(request.parser.reasoning_parser, "qwen3");
  EXPECT_TRUE(sends_tools(request));
  EXPECT_TRUE(request.warnings.empty());
}

TEST(ToolPrompt, ToolsThatATemplateCannotShow) {
  OpenAiRequest request = request_with_tools();
  ChatTemplateTraits traits;
  traits.shows_tools = false;
  fit_tools(&traits, &request);
  EXPECT_EQ(request.parser.tool_parser, "generic");
  EXPECT_EQ(request.parser.reasoning_parser, "");
  EXPECT_FALSE(sends_tools(request));
  EXPECT_NE(request.messages_json.find("<tool_call>"), std::string::npos);
  EXPECT_EQ(request.warnings.size(), 1u);
  OpenAiRequest named = request_with_tools();
  named.parser.tool_parser = "hermes";
  named.parser.reasoning_parser = "none";
  fit_tools(&traits, &named);
  EXPECT_EQ(named.parser.tool_parser, "hermes");
  EXPECT_EQ(named.parser.reasoning_parser, "");
}

}  // namespace
}  // namespace foretoken
