#include "text/chat_calls.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json with_arguments(const std::string& arguments) {
  return json::parse(
      R"([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": )" +
      arguments + "}}]}]");
}

std::string fitted_arguments(const std::string& arguments, bool object, bool text) {
  json messages = with_arguments(arguments);
  ChatTemplateTraits traits;
  traits.object_arguments = object;
  traits.string_arguments = text;
  fit_call_arguments(messages, traits);
  return messages[0]["tool_calls"][0]["function"]["arguments"].dump();
}

TEST(ChatCalls, ArgumentsGetTheFormThatIsTaken) {
  for (const char* nothing : {R"("")", "null", R"(" \n")", "{}"}) {
    EXPECT_EQ(fitted_arguments(nothing, true, false), "{}") << nothing;
    EXPECT_EQ(fitted_arguments(nothing, false, true), R"("{}")") << nothing;
  }
  EXPECT_EQ(fitted_arguments(R"("{\"x\": 1}")", true, false), R"({"x":1})");
  EXPECT_EQ(fitted_arguments(R"("{\"x\": 1}")", true, true), R"({"x":1})");
  // Text that was sent keeps its blanks.
  EXPECT_EQ(fitted_arguments(R"("{\"x\": 1}")", false, true), R"("{\"x\": 1}")");
  EXPECT_EQ(fitted_arguments(R"({"x": 1})", false, true), R"("{\"x\":1}")");
  EXPECT_EQ(fitted_arguments(R"("{\"a")", true, true), R"("{\"a")");
  EXPECT_EQ(fitted_arguments(R"("{\"a")", true, false), R"({"raw_arguments":"{\"a"})");
  EXPECT_EQ(fitted_arguments(R"("[1]")", true, false), R"({"raw_arguments":"[1]"})");
  EXPECT_EQ(fitted_arguments("[1]", true, false), R"({"raw_arguments":"[1]"})");
}

TEST(ChatCalls, ArgumentsNestedTooDeeplyAreATextAmongThem) {
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  const std::string fitted = fitted_arguments(json(deep).dump(), true, false);
  EXPECT_EQ(fitted.rfind("{\"raw_arguments\":", 0), 0u) << fitted.substr(0, 40);
}

TEST(ChatCalls, AbsentArgumentsAreEmpty) {
  json messages =
      json::parse(R"([{"tool_calls": [{"function": {"name": "f"}}, {"name": "g"}, 1]}])");
  fit_call_arguments(messages, {});
  EXPECT_EQ(
      messages.dump(),
      R"([{"tool_calls":[{"function":{"name":"f","arguments":{}}},{"name":"g","arguments":{}},1]}])");
}

TEST(ChatCalls, ShortIdsStandForLongOnes) {
  json messages = json::parse(R"([{"role": "assistant", "tool_calls": [{"id": "call_1234567890"},
      {"id": "abcdefgh9"}, {}]}, {"role": "tool", "tool_call_id": "call_1234567890"},
      {"role": "tool", "tool_call_id": "abcdefgh9"}, {"role": "tool"}])");
  ChatTemplateTraits traits;
  json same = messages;
  fit_call_ids(same, traits);
  EXPECT_EQ(same, messages);
  traits.any_tool_call_id = false;
  fit_call_ids(messages, traits);
  const json& calls = messages[0]["tool_calls"];
  EXPECT_EQ(calls[0]["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(calls[1]["id"], "abcdefgh9");
  EXPECT_EQ(calls[2]["id"], "call00002");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(messages[i + 1]["tool_call_id"], calls[i]["id"]) << i;
}

TEST(ChatCalls, IdsNameTheirFunctions) {
  json messages = json::parse(R"([{"role": "assistant", "tool_calls": [
      {"id": "call_1", "function": {"name": "f"}}, {"id": "functions.g:7", "function": {"name": "g"}},
      {"function": {"name": "f"}}]}, {"role": "tool", "tool_call_id": "call_1"},
      {"role": "tool", "tool_call_id": "functions.g:7"}, {"role": "tool"}])");
  ChatTemplateTraits traits;
  traits.names_calls_by_id = true;
  fit_call_ids(messages, traits);
  const json& calls = messages[0]["tool_calls"];
  EXPECT_EQ(calls[0]["id"], "functions.f:0");
  EXPECT_EQ(calls[1]["id"], "functions.g:7");
  EXPECT_EQ(calls[2]["id"], "functions.f:2");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(messages[i + 1]["tool_call_id"], calls[i]["id"]) << i;
}

TEST(ChatCalls, ParallelCallsBecomeTurnsWithTheirResults) {
  json messages = json::parse(R"([{"role": "user"},
      {"role": "assistant", "content": "Both", "reasoning": "hm", "tool_calls": [{"id": "a"}, {"id": "b"}]},
      {"role": "tool", "tool_call_id": "b"}, {"role": "tool", "tool_call_id": "a"}, {"role": "user"}])");
  split_parallel_calls(messages);
  EXPECT_EQ(messages.dump(),
            R"([{"role":"user"},{"role":"assistant","content":"Both","reasoning":"hm",)"
            R"("tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"},)"
            R"({"role":"assistant","content":"","tool_calls":[{"id":"b"}]},)"
            R"({"role":"tool","tool_call_id":"b"},{"role":"user"}])");
}

TEST(ChatCalls, ContentBesideCalls) {
  const auto content = [](const char* turn, bool null, bool absent, bool empty) {
    json messages = json::array({json::parse(turn)});
    messages[0]["tool_calls"] = json::array({json::object()});
    ChatTemplateTraits traits;
    traits.null_content = null;
    traits.absent_content = absent;
    traits.empty_content = empty;
    fit_content_beside_calls(messages, traits);
    messages[0].erase("tool_calls");
    return messages[0].dump();
  };
  const char* null = R"({"content":null})";
  const char* empty = R"({"content":""})";
  EXPECT_EQ(content(null, true, true, true), null);
  EXPECT_EQ(content(null, false, true, true), empty);
  EXPECT_EQ(content(null, false, true, false), "{}");
  EXPECT_EQ(content("{}", true, true, true), "{}");
  EXPECT_EQ(content("{}", true, false, true), empty);
  EXPECT_EQ(content("{}", true, false, false), null);
  EXPECT_EQ(content(empty, true, true, false), null);
  EXPECT_EQ(content(R"({"content":"x"})", false, false, false), R"({"content":"x"})");
}

TEST(ChatCalls, CallsAndResultsAsText) {
  json messages = json::parse(R"([{"role": "assistant", "content": "So:", "tool_calls":
      [{"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "y"}]}])");
  write_results_as_text(messages);
  write_calls_as_text(messages);
  EXPECT_EQ(messages[0].dump(),
            json({{"role", "assistant"},
                  {"content",
                   "So:\n{\"tool_call\":{\"name\":\"f\",\"arguments\":{\"x\":1},\"id\":\"1\"}}"}})
                .dump());
  EXPECT_EQ(messages[1]["role"], "user");
  EXPECT_EQ(messages[1]["content"],
            R"({"tool_response":{"tool":"f","content":"y","tool_call_id":"1"}})");
}

}  // namespace
}  // namespace foretoken
