#include "serve/openai/openai_choice.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest chat() {
  OpenAiDefaults defaults;
  defaults.tool_parser = "hermes";
  defaults.reasoning_parser = "qwen3";
  return parse_openai_request(OpenAiKind::kChat,
                              json::parse(R"({"messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "function", "function": {"name": "f"}}]})"),
                              defaults)
      .value();
}

TEST(OpenAiChoice, AMessageOfReasoningTextAndCalls) {
  int num_calls = 0;
  ReasoningShare share;
  const json message = chat_message(
      chat(), "<think>hm</think>Yes.<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
      &num_calls, &share);
  EXPECT_EQ(num_calls, 1);
  EXPECT_EQ(message["content"], "Yes.");
  EXPECT_EQ(share.tokens_of(9), 2);  // "hm" of "hm", "Yes.", "f" and "{}"
  EXPECT_EQ(message["reasoning"], "hm");
  EXPECT_EQ(message["reasoning_content"], "hm");
  EXPECT_EQ(message["tool_calls"][0]["type"], "function");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], "{}");
  OpenAiRequest hidden = chat();
  hidden.include_reasoning = false;
  EXPECT_FALSE(
      chat_message(hidden, "<think>hm</think>Yes.", &num_calls, &share).contains("reasoning"));
}

TEST(OpenAiChoice, AMessageOfACallAloneHasNoContent) {
  int num_calls = 0;
  ReasoningShare share;
  const json message = chat_message(
      chat(), "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", &num_calls, &share);
  EXPECT_TRUE(message["content"].is_null());
}

TEST(OpenAiChoice, FunctionsAreAnsweredAsTheyWereOnce) {
  OpenAiRequest request =
      parse_openai_request(OpenAiKind::kChat,
                           json::parse(R"({"messages": [{"role": "user", "content": "x"}],
                             "functions": [{"name": "f"}]})"),
                           OpenAiDefaults())
          .value();
  request.parser.tool_parser = "hermes";
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  int num_calls = 0;
  ReasoningShare share;
  const json message = chat_message(request, call + call, &num_calls, &share);
  EXPECT_EQ(message["function_call"], (json{{"name", "f"}, {"arguments", "{}"}}));
  EXPECT_FALSE(message.contains("tool_calls"));
  ChatDelta delta;
  delta.tool_calls.push_back({0, "id", "f", "{"});
  EXPECT_EQ(chat_delta(request, delta),
            (json{{"function_call", {{"name", "f"}, {"arguments", "{"}}}}));
  RequestOutput output;
  output.finished = true;
  output.finish_reason = FinishReason::kStop;
  EXPECT_EQ(finish_reason(request, output, 1), "function_call");
}

TEST(OpenAiChoice, SearchesForCallsAreTold) {
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  std::vector<bool> told;
  OpenAiRequest request = chat();
  request.on_tool_parse = [&](bool found) { told.push_back(found); };
  int num_calls = 0;
  ReasoningShare share;
  chat_message(request, "Yes.", &num_calls, &share);
  chat_message(request, call, &num_calls, &share);
  EXPECT_EQ(told, (std::vector<bool>{false, true}));
  told.clear();
  request.stream = true;
  const auto parser = make_choice_parser(request);
  parser->push("Yes.");
  parser->push(call);
  parser->finish();
  EXPECT_EQ(told, (std::vector<bool>{false, true}));
  told.clear();
  request.parser.tool_choice = "f";  // forced: nothing is searched
  make_choice_parser(request)->push("{}");
  EXPECT_TRUE(told.empty());
}

TEST(OpenAiChoice, DeltasHaveWhatIsNew) {
  ChatDelta delta;
  EXPECT_TRUE(chat_delta(chat(), delta).empty());
  delta.reasoning = "hm";
  delta.tool_calls = {{1, "id", "f", ""}, {2, "", "", "}"}};
  const json told = chat_delta(chat(), delta);
  EXPECT_EQ(told["reasoning"], "hm");
  EXPECT_EQ(told["tool_calls"][0]["index"], 1);
  EXPECT_EQ(told["tool_calls"][0]["id"], "id");
  EXPECT_FALSE(told["tool_calls"][1].contains("id"));
  EXPECT_EQ(told["tool_calls"][1]["function"]["arguments"], "}");
}

TEST(OpenAiChoice, CallsOpenWithoutArguments) {
  EXPECT_EQ(deltas_in_turn({}).size(), 1);
  ChatDelta delta;
  delta.reasoning = "hm";
  delta.content = "So.";
  delta.tool_calls = {{0, "", "", "1}"}, {1, "i", "f", "{\"a\""}, {2, "j", "g", ""}};
  const std::vector<ChatDelta> turns = deltas_in_turn(delta);
  ASSERT_EQ(turns.size(), 6);
  EXPECT_EQ(turns[0].reasoning, "hm");
  EXPECT_EQ(turns[1].content, "So.");
  const std::vector<int> indices = {0, 1, 1, 2};
  const std::vector<std::string> arguments = {"1}", "", "{\"a\"", ""};
  for (size_t i = 0; i < indices.size(); ++i) {
    const ChatDelta& turn = turns[i + 2];
    EXPECT_TRUE(turn.reasoning.empty() && turn.content.empty());
    ASSERT_EQ(turn.tool_calls.size(), 1);
    EXPECT_EQ(turn.tool_calls[0].index, indices[i]);
    EXPECT_EQ(turn.tool_calls[0].arguments, arguments[i]);
  }
  EXPECT_EQ(turns[3].tool_calls[0].name, "f");
  EXPECT_TRUE(turns[4].tool_calls[0].id.empty());
}

TEST(OpenAiChoice, ReasonsOfTheEnd) {
  RequestOutput output;
  EXPECT_TRUE(finish_reason(chat(), output, 0).is_null());
  output.finished = true;
  output.finish_reason = FinishReason::kStop;
  EXPECT_EQ(finish_reason(chat(), output, 0), "stop");
  EXPECT_EQ(finish_reason(chat(), output, 1), "tool_calls");
  output.finish_reason = FinishReason::kLength;
  EXPECT_EQ(finish_reason(chat(), output, 1), "length");
}

TEST(OpenAiChoice, OriginsCutTheText) {
  const std::vector<OriginPiece> pieces = {{true, 2, 3}, {false, 1, 2}, {true, 1, 9}};
  EXPECT_EQ(token_origins("abcdef", pieces).dump(),
            R"([{"origin":"draft","num_tokens":2,"text":"abc"},)"
            R"({"origin":"target","num_tokens":1,"text":"de"},)"
            R"({"origin":"draft","num_tokens":1,"text":"f"}])");
}

TEST(OpenAiChoice, TokensNamedById) {
  const auto named =
      named_by_id(std::vector<TokenLogprobs>{{{7, -1.0f, 1, "a"}, {{8, -2.0f, 2, "b"}}}});
  EXPECT_EQ(named[0].token.decoded_token, "token_id:7");
  EXPECT_EQ(named[0].top[0].decoded_token, "token_id:8");
}

TEST(OpenAiChoice, PartsOfACompletion) {
  OpenAiRequest request;
  Request asked;
  asked.sampling.logprobs = 0;
  RequestOutput news;
  news.text = "cd";
  news.logprobs = {{{1, -1.0f, 1, "cd"}, {}}};
  const std::vector<TokenLogprobs> prompt_tokens = {{{2, -1.0f, 1, "b"}, {}}};
  int64_t offset = 0;
  const json first =
      completion_part(request, asked, news, EchoedPrompt{"ab", prompt_tokens}, offset);
  EXPECT_EQ(first["text"], "abcd");
  EXPECT_EQ(first["logprobs"]["tokens"], (json{"a", "b", "cd"}));
  news.text = "";  // held back, as it may begin a stop string
  EXPECT_EQ(completion_part(request, asked, news, std::nullopt, offset)["logprobs"]["text_offset"],
            (json{4}));
  news.text = "cdef";
  EXPECT_EQ(completion_part(request, asked, news, std::nullopt, offset)["logprobs"]["text_offset"],
            (json{6}));
}

}  // namespace
}  // namespace foretoken
