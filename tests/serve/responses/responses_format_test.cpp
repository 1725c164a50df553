#include "serve/responses/responses_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

ResponsesRequest request(const ResponseStore& store, const std::string& more = "") {
  OpenAiDefaults defaults;
  defaults.tool_parser = "hermes";
  defaults.reasoning_parser = "qwen3";
  return parse_responses_request(
             json::parse(R"({"input": "Hi", "tools": [{"type": "function", "name": "f"}])" + more +
                         "}"),
             defaults, store)
      .value();
}

ChoiceOutput output(const std::string& text, FinishReason reason) {
  ChoiceOutput made;
  made.output.text = text;
  made.output.finished = reason != FinishReason::kNone;
  made.output.finish_reason = reason;
  made.output.stats.num_prompt_tokens = 10;
  made.output.stats.num_output_tokens = 20;
  return made;
}

constexpr const char* kText =
    "<think>hm</think>Yes.<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";

TEST(ResponsesFormat, AWholeResponseIsKept) {
  ResponseStore store(4);
  ResponsesFormat format(request(store), "resp_1", "m", 5, store);
  OutputSum sum;
  sum.add(output(kText, FinishReason::kStop).output);
  const json response = json::parse(format.whole({&sum}));
  EXPECT_EQ(response["object"], "response");
  EXPECT_EQ(response["status"], "completed");
  ASSERT_EQ(response["output"].size(), 3u);
  EXPECT_EQ(response["output"][0]["type"], "reasoning");
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "Yes.");
  EXPECT_EQ(response["output"][2]["name"], "f");
  EXPECT_EQ(json::parse(response["output"][2]["arguments"].get<std::string>())["a"], 1);
  EXPECT_EQ(response["usage"]["total_tokens"], 30);
  EXPECT_EQ(response["usage"]["input_tokens_details"]["cache_write_tokens"], 0);
  const auto kept = store.find("resp_1");
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->response["id"], "resp_1");
  ASSERT_EQ(kept->messages.size(), 2u);
  EXPECT_EQ(kept->messages[1]["content"], "Yes.");
  EXPECT_EQ(kept->messages[1]["tool_calls"].size(), 1u);
}

TEST(ResponsesFormat, AStreamKeepsTheLogprobsOfAWholeAnswer) {
  const std::string wishes = R"(, "top_logprobs": 0, "include": ["message.output_text.logprobs"])";
  const auto part = [](const char* text, const char* token, FinishReason reason) {
    ChoiceOutput made = output(text, reason);
    made.output.logprobs.push_back({{1, -0.5f, 1, token}, {}});
    return made;
  };
  // A piece that may be a marker's begin is held back; the token of the end has no text.
  const std::vector<ChoiceOutput> pieces = {
      part("a", "a", FinishReason::kNone), part(" <to", " <to", FinishReason::kNone),
      part("es", "es", FinishReason::kNone), part("", "</s>", FinishReason::kStop)};
  ResponseStore store(4);
  ResponsesFormat streamed(request(store, wishes), "resp_1", "m", 5, store);
  ResponsesFormat asked(request(store, wishes), "resp_2", "m", 5, store);
  OutputSum sum;
  for (const ChoiceOutput& piece : pieces) {
    streamed.events(0, piece);
    sum.add(piece.output);
  }
  const json whole = json::parse(asked.whole({&sum}));
  streamed.last_events();
  const json& told = whole["output"][0]["content"][0]["logprobs"];
  EXPECT_EQ(told.size(), 4u);
  const auto kept = store.find("resp_1");
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(told, kept->response["output"][0]["content"][0]["logprobs"]);
}

TEST(ResponsesFormat, WhatIsNotToBeKeptIsNot) {
  ResponseStore store(4);
  ResponsesFormat format(request(store, R"(, "store": false)"), "resp_1", "m", 5, store);
  OutputSum sum;
  sum.add(output("a", FinishReason::kLength).output);
  const json response = json::parse(format.whole({&sum}));
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(store.size(), 0u);
}

TEST(ResponsesFormat, AnItemThatTheLengthCutsIsIncompleteInAStreamToo) {
  ResponseStore store(4);
  ResponsesFormat format(request(store), "resp_1", "m", 5, store);
  const std::string events = format.events(0, output("a", FinishReason::kLength));
  const size_t done = events.find("\"response.output_item.done\"");
  ASSERT_NE(done, std::string::npos);
  EXPECT_NE(events.find("\"status\":\"incomplete\"", done), std::string::npos) << events;
}

TEST(ResponsesFormat, EventsComeInOpenAisOrder) {
  ResponseStore store(4);
  ResponsesFormat format(request(store), "resp_1", "m", 5, store);
  const std::string text = kText;
  std::string stream;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool last = i + 1 == text.size();
    stream += format.events(
        0, output(text.substr(i, 1), last ? FinishReason::kStop : FinishReason::kNone));
  }
  stream += format.last_events();
  std::string order;
  std::string before;
  int number = 0;
  for (size_t at = 0; (at = stream.find("data: ", at)) != std::string::npos; ++at) {
    const json event = json::parse(stream.substr(at + 6, stream.find('\n', at) - at - 6));
    EXPECT_EQ(event["sequence_number"], number++);
    const std::string type = event["type"].get<std::string>().substr(9);
    if (type != before) order += type + "\n";
    before = type;
    if (type == "completed") {
      EXPECT_EQ(event["response"]["output"].size(), 3u);
    }
  }
  EXPECT_EQ(order,
            "created\nin_progress\n"
            "output_item.added\ncontent_part.added\nreasoning_text.delta\nreasoning_text.done\n"
            "content_part.done\noutput_item.done\n"
            "output_item.added\ncontent_part.added\noutput_text.delta\noutput_text.done\n"
            "content_part.done\noutput_item.done\n"
            "output_item.added\nfunction_call_arguments.delta\nfunction_call_arguments.done\n"
            "output_item.done\ncompleted\n");
  EXPECT_TRUE(store.find("resp_1").has_value());
}

// Tools with a text, and those of a namespace, are called as the client knows them.
TEST(ResponsesFormat, CallsOfOfferedToolsHaveTheirOwnForm) {
  constexpr const char* kCalls =
      "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"*** A\\n\"}}\n</tool_call>"
      "<tool_call>\n{\"name\": \"mcp__read\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  ResponseStore store(4);
  OpenAiDefaults defaults;
  defaults.tool_parser = "hermes";
  const json body = json::parse(R"({"input": "Hi", "tools": [{"type": "custom", "name": "patch"},
    {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "read"}]}]})");
  ResponsesFormat format(parse_responses_request(body, defaults, store).value(), "resp_1", "m", 5,
                         store);
  std::string stream = format.events(0, output(kCalls, FinishReason::kStop));
  stream += format.last_events();
  EXPECT_NE(stream.find("\"type\":\"response.custom_tool_call_input.done\""), std::string::npos);
  EXPECT_NE(stream.find("\"delta\":\"*** A\\n\""), std::string::npos) << stream;
  const json kept = store.find("resp_1")->response["output"];
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0]["type"], "custom_tool_call");
  EXPECT_EQ(kept[0]["input"], "*** A\n");
  EXPECT_FALSE(kept[0].contains("arguments"));
  EXPECT_EQ(kept[1]["type"], "function_call");
  EXPECT_EQ(kept[1]["name"], "read");
  EXPECT_EQ(kept[1]["namespace"], "mcp");
  EXPECT_EQ(store.find("resp_1")->messages[1]["tool_calls"][1]["function"]["name"], "mcp__read");
}

TEST(ResponsesFormat, AStreamThatBreaksEndsFailed) {
  ResponseStore store(4);
  ResponsesFormat format(request(store), "resp_1", "m", 5, store);
  EXPECT_NE(format.error_events(internal_error("broken")).find("response.failed"),
            std::string::npos);
  EXPECT_EQ(store.find("resp_1")->response["error"]["message"], "broken");
}

}  // namespace
}  // namespace foretoken
