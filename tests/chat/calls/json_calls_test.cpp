#include "chat/calls/json_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

const std::string kParis = R"({"city": "Paris"})";

TEST(JsonCalls, MarkersOfSeveralWords) {
  check_cases(options_of("gigachat3"),
              {{"behind a text",
                "Hm.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"now\", "
                "\"arguments\": {}}",
                {"", "Hm.", {{"now", "{}"}}}},
               {"the newer marker",
                "<|function_call|>{\"name\": \"now\", \"arguments\": {}}",
                {"", "", {{"now", "{}"}}}}});
}

TEST(JsonCalls, Hermes) {
  check_cases(
      options_of("hermes"),
      {
          {"one call",
           "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
           "</tool_call>",
           {"", "", {{"get_weather", kParis}}}},
          {"content before, between and after",
           "Let me look.\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call> and \n"
           "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\": \"Paris\"}}</tool_call>\n"
           "Done.",
           {"", "Let me look.\n and \n\nDone.", {{"now", "{}"}, {"get_weather", kParis}}}},
          {"white space between calls is no content",
           "\n\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n"
           "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"no call", " 5 < 6 <tool <tool_call", {"", " 5 < 6 <tool <tool_call", {}}},
          {"arguments before the name",
           R"(<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"}</tool_call>)",
           {"", "", {{"get_weather", kParis}}}},
          {"nested JSON, escapes, markers and unicode within strings",
           R"(<tool_call>{"name": "f", "arguments": {"a": [{"b": "\"}</tool_call>\\"}, [], -1.5e3],)"
           "\"é\": \"\\u00fc🦀\"}}</tool_call>",
           {"",
            "",
            {{"f", R"({"a": [{"b": "\"}</tool_call>\\"}, [], -1.5e3],)"
                   "\"é\": \"\\u00fc🦀\"}"}}}},
          {"an unknown function is a call: the client decides",
           R"(<tool_call>{"name": "nope", "arguments": {}}</tool_call>)",
           {"", "", {{"nope", "{}"}}}},
          {"no arguments", R"(<tool_call>{"name": "now"}</tool_call>)", {"", "", {{"now", "{}"}}}},
          {"null arguments",
           R"(<tool_call>{"name": "now", "arguments": null}</tool_call>)",
           {"", "", {{"now", "{}"}}}},
          {"empty arguments",
           R"(<tool_call>{"name": "now", "arguments": ""}</tool_call>)",
           {"", "", {{"now", "{}"}}}},
          {"arguments encoded twice",
           R"(<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}</tool_call>)",
           {"", "", {{"get_weather", kParis}}}},
          {"further keys",
           R"(<tool_call>{"id": 3, "type": "function", "name": "now", "arguments": {}}</tool_call>)",
           {"", "", {{"now", "{}"}}}},
          {"a line break within a string is escaped",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\"}}</tool_call>",
           {"", "", {{"f", "{\"a\": \"x\\ny\"}"}}}},
          {"a list of calls",
           R"(<tool_call>[{"name": "now", "arguments": {}}, {"name": "now"}]</tool_call>)",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"one after the other without markers between",
           "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"now\"}\n</tool_call>",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"the closing marker is missing",
           R"(<tool_call>{"name": "now", "arguments": {}})"
           "\n<tool_call>{\"name\": \"now\", \"arguments\": {}}",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
      });
}

TEST(JsonCalls, BrokenHermesCallsStayContent) {
  const std::vector<std::string> broken = {
      "not json",
      "{\"name\": 5, \"arguments\": {}}",
      "{\"name\": \"\", \"arguments\": {}}",
      "{\"arguments\": {}}",
      "{'name': 'now'}",
      "{\"name\": \"now\" \"arguments\": {}}",
      "{\"name\": \"now\", \"name\": \"f\"}",
      "",
      "{\"name\": \"now\", \"arguments\": +}",
      "{\"name\": \"now\", \"arguments\": 01}",
  };
  for (const std::string& text : broken) {
    const std::string whole = "<tool_call>" + text + "</tool_call>";
    EXPECT_EQ(parse_all_ways(options_of("hermes"), whole), (ChatSum{"", whole, {}}));
  }
  check_cases(options_of("hermes"),
              {
                  {"cut off before the call is known",
                   "Hm. <tool_call>{\"name\": \"no",
                   {"", "Hm. {\"name\": \"no", {}}},
                  {"a marker alone", "<tool_call>", {}},
                  {"a good call behind a broken one",
                   "<tool_call>{<tool_call>{\"name\": \"now\"}</tool_call>",
                   {"", "<tool_call>{", {{"now", "{}"}}}},
                  {"words about the format",
                   "Write <tool_call>, the call and </tool_call>.",
                   {"", "Write <tool_call>, the call and </tool_call>.", {}}},
                  {"words about the format behind a call",
                   "<tool_call>{\"name\": \"now\"}</tool_call> I wrote <tool_call> there.",
                   {"", " I wrote <tool_call> there.", {{"now", "{}"}}}},
                  {"broken after the arguments began",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, oops}}</tool_call> So.",
                   {"", " So.", {{"f", "{\"a\": 1}"}}}},
                  {"broken, and no marker comes",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, oops",
                   {"", "oops", {{"f", "{\"a\": 1}"}}}},
                  {"a brace is missing",
                   "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>",
                   {"", "", {{"f", "{\"a\": 1}"}}}},
                  {"a brace to spare",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}}</tool_call>",
                   {"", "", {{"f", "{\"a\": 1}"}}}},
                  {"a closing marker to spare",
                   "<tool_call>{\"name\": \"now\"}</tool_call>\n</tool_call>",
                   {"", "", {{"now", "{}"}}}},
                  {"cut off within the arguments",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x",
                   {"", "", {{"f", "{\"a\": \"x\"}"}}}},
                  {"cut off within a key",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2], \"bc",
                   {"", "", {{"f", "{\"a\": [1, 2]}"}}}},
                  {"cut off behind the arguments",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_c",
                   {"", "", {{"f", "{\"a\": 1}"}}}},
              });
}

TEST(JsonCalls, ArgumentsStreamAsTheyCome) {
  auto parser = make_chat_parser(options_of("hermes"));
  ASSERT_TRUE(parser.ok());
  EXPECT_TRUE(parser.value()->push("<tool_call>{\"name\": \"f\", \"arguments\": ").empty());
  std::vector<ChatPiece> pieces = parser.value()->push("{\"a");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].call_name, "f");
  EXPECT_EQ(pieces[0].text, "{");
  pieces = parser.value()->push("\": [1, \"x y");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "\"a\": [1, \"x y");
  EXPECT_TRUE(pieces[0].call_id.empty());
  EXPECT_EQ(parser.value()->num_tool_calls(), 1);
}

TEST(JsonCalls, Llama3) {
  check_cases(
      options_of("llama3_json"),
      {
          {"bare",
           R"({"name": "get_weather", "parameters": {"city": "Paris"}})",
           {"", "", {{"get_weather", kParis}}}},
          {"marked",
           R"(<|python_tag|>{"name": "get_weather", "arguments": {"city": "Paris"}})",
           {"", "", {{"get_weather", kParis}}}},
          {"several, by semicolons",
           R"({"name": "now", "parameters": {}}; {"name": "now", "parameters": {}})",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"several, by line breaks",
           "{\"name\": \"now\", \"parameters\": {}}\n{\"name\": \"now\", \"parameters\": {}}",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"text behind a call",
           R"({"name": "now", "parameters": {}}; so be it)",
           {"", "; so be it", {{"now", "{}"}}}},
          {"JSON that is no call", R"({"name": "Bob"})", {"", R"({"name": "Bob"})", {}}},
          {"an unknown function without a marker",
           R"({"name": "Bob", "parameters": {}})",
           {"", R"({"name": "Bob", "parameters": {}})", {}}},
          {"an unknown function behind a marker",
           R"(<|python_tag|>{"name": "Bob", "parameters": {}})",
           {"", "", {{"Bob", "{}"}}}},
          {"JSON within text",
           R"(So: {"name": "now", "parameters": {}})",
           {"", R"(So: {"name": "now", "parameters": {}})", {}}},
      });
}

TEST(JsonCalls, Mistral) {
  check_cases(options_of("mistral"),
              {
                  {"a list",
                   R"([TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}},)"
                   R"( {"name": "now", "arguments": {}}])",
                   {"", "", {{"get_weather", kParis}, {"now", "{}"}}}},
                  {"name and arguments",
                   R"([TOOL_CALLS]get_weather{"city": "Paris"}[TOOL_CALLS]now{})",
                   {"", "", {{"get_weather", kParis}, {"now", "{}"}}}},
                  {"with an id and a marker",
                   R"(Hm. [TOOL_CALLS]get_weather[CALL_ID]abc123XYZ[ARGS]{"city": "Paris"})",
                   {"", "Hm. ", {{"get_weather", kParis}}}},
                  {"with a marker", R"([TOOL_CALLS]now[ARGS]{})", {"", "", {{"now", "{}"}}}},
                  {"brackets in text", "[1] and [TOOL", {"", "[1] and [TOOL", {}}},
                  {"an empty list", "[TOOL_CALLS][]", {"", "[TOOL_CALLS][]", {}}},
                  {"no name", "[TOOL_CALLS]now[OTHER]{}", {"", "[TOOL_CALLS]now[OTHER]{}", {}}},
                  {"a name of two words", "[TOOL_CALLS]now or{}", {"", "[TOOL_CALLS]now or{}", {}}},
                  {"broken, then a good one",
                   "[TOOL_CALLS]no!way[TOOL_CALLS]now{}",
                   {"", "[TOOL_CALLS]no!way", {{"now", "{}"}}}},
                  {"a list cut off",
                   R"([TOOL_CALLS] [{"name": "now", "arguments": {}}, )",
                   {"", "", {{"now", "{}"}}}},
              });
}

TEST(JsonCalls, Granite) {
  check_cases(options_of("granite"),
              {
                  {"marked",
                   R"(<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}])",
                   {"", "", {{"get_weather", kParis}}}},
                  {"the other marker",
                   R"(<tool_call>[{"name": "now", "arguments": {}}])",
                   {"", "", {{"now", "{}"}}}},
                  {"bare",
                   R"([{"name": "now", "arguments": {}}, {"name": "now", "arguments": {}}])",
                   {"", "", {{"now", "{}"}, {"now", "{}"}}}},
                  {"a list that is no call", "[1, 2]", {"", "[1, 2]", {}}},
                  {"broken", "<tool_call>x", {"", "<tool_call>x", {}}},
              });
}

TEST(JsonCalls, ManyMarkersAreNotQuadratic) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "<tool_call>{\"a\": \"";
  const ChatSum sum = parse_pieces(options_of("hermes"), {text});
  EXPECT_TRUE(sum.calls.empty());
  EXPECT_TRUE(sum.content.starts_with("<tool_call>{"));
}

}  // namespace
}  // namespace foretoken
