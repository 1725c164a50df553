#include "serve/anthropic/messages_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest request() {
  OpenAiDefaults defaults;
  defaults.tool_parser = "hermes";
  defaults.reasoning_parser = "qwen3";
  return parse_openai_request(OpenAiKind::kChat,
                              json::parse(R"({"messages": [{"role": "user", "content": "x"}],
      "stop": ["END"], "tools": [{"type": "function", "function": {"name": "f"}}]})"),
                              defaults)
      .value();
}

ChoiceOutput output(const std::string& text, bool last) {
  ChoiceOutput made;
  made.output.text = text;
  made.output.token_ids = {1};
  made.output.finished = last;
  made.output.finish_reason = last ? FinishReason::kStop : FinishReason::kNone;
  made.output.stats.num_prompt_tokens = 10;
  made.output.stats.num_cached_tokens = 4;
  made.output.stats.num_output_tokens = 3;
  return made;
}

constexpr const char* kText =
    "<think>hm</think>Yes.<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";

std::vector<json> events_of(const std::string& stream) {
  std::vector<json> events;
  for (size_t at = 0; (at = stream.find("data: ", at)) != std::string::npos; ++at) {
    events.push_back(json::parse(stream.substr(at + 6, stream.find('\n', at) - at - 6)));
  }
  return events;
}

TEST(MessagesFormat, AWholeMessage) {
  MessagesFormat format(request(), "msg_1", "m");
  OutputSum sum;
  sum.add(output(kText, true).output);
  const json message = json::parse(format.whole({&sum}));
  EXPECT_EQ(message["type"], "message");
  ASSERT_EQ(message["content"].size(), 3u);
  EXPECT_EQ(message["content"][0]["thinking"], "hm");
  EXPECT_EQ(message["content"][1]["text"], "Yes.");
  EXPECT_EQ(message["content"][2]["name"], "f");
  EXPECT_EQ(message["content"][2]["input"]["a"], 1);
  EXPECT_EQ(message["stop_reason"], "tool_use");
  EXPECT_EQ(message["usage"]["input_tokens"], 6);
  EXPECT_EQ(message["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(message["usage"]["output_tokens"], 3);
  EXPECT_LE(message["usage"]["output_tokens_details"]["thinking_tokens"], 3);
}

TEST(MessagesFormat, StopReasons) {
  const auto reason_of = [](FinishReason reason, const std::string& stop, int most = 3) {
    OpenAiRequest asked = request();
    asked.requests.front().sampling.max_tokens = most;
    MessagesFormat format(asked, "msg_1", "m");
    ChoiceOutput last = output("a", true);
    last.output.finish_reason = reason;
    last.output.stop_reason = stop;
    OutputSum sum;
    sum.add(last.output);
    return json::parse(format.whole({&sum}));
  };
  EXPECT_EQ(reason_of(FinishReason::kStop, "")["stop_reason"], "end_turn");
  EXPECT_EQ(reason_of(FinishReason::kLength, "")["stop_reason"], "max_tokens");
  // Three tokens where four were wanted: more did not fit into the context.
  EXPECT_EQ(reason_of(FinishReason::kLength, "", 4)["stop_reason"],
            "model_context_window_exceeded");
  EXPECT_EQ(reason_of(FinishReason::kStop, "END")["stop_reason"], "stop_sequence");
  EXPECT_EQ(reason_of(FinishReason::kStop, "END")["stop_sequence"], "END");
}

TEST(MessagesFormat, EventsOfAStream) {
  MessagesFormat format(request(), "msg_1", "m");
  std::string stream;
  const std::string text = kText;
  for (size_t i = 0; i < text.size(); ++i) {
    stream += format.events(0, output(text.substr(i, 1), i + 1 == text.size()));
  }
  stream += format.last_events();
  std::string order;
  std::string arguments;
  for (const json& event : events_of(stream)) {
    const std::string type = event["type"];
    if (type == "content_block_delta") {
      if (event["delta"]["type"] == "input_json_delta") {
        arguments += event["delta"]["partial_json"].get<std::string>();
      }
    } else {
      order += type + " ";
    }
  }
  EXPECT_EQ(
      order,
      "message_start content_block_start content_block_stop content_block_start "
      "content_block_stop content_block_start content_block_stop message_delta message_stop ");
  EXPECT_EQ(json::parse(arguments)["a"], 1);
  EXPECT_EQ(events_of(stream)[0]["message"]["usage"]["output_tokens"], 0);
}

TEST(MessagesFormat, Errors) {
  MessagesFormat format(request(), "msg_1", "m");
  EXPECT_EQ(json::parse(format.error(invalid_argument("no")))["error"]["type"],
            "invalid_request_error");
  EXPECT_EQ(format.error_events(internal_error("no")).rfind("event: error\n", 0), 0u);
}

}  // namespace
}  // namespace foretoken
