#include "serve/openai/openai_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest chat_with(const char* more) {
  OpenAiDefaults defaults;
  defaults.tool_parser = "hermes";
  json body = json::parse(R"({"messages": [{"role": "user", "content": "x"}], "stream": true,
    "tools": [{"type": "function", "function": {"name": "f"}}]})");
  body.update(json::parse(more));
  return parse_openai_request(OpenAiKind::kChat, body, defaults).value();
}

ChoiceOutput output(const std::string& text, bool last, int index = 0) {
  ChoiceOutput made;
  made.output.index = index;
  made.output.text = text;
  made.output.token_ids = {1};
  made.output.finished = last;
  made.output.finish_reason = last ? FinishReason::kStop : FinishReason::kNone;
  made.output.stats.num_prompt_tokens = 3;
  made.output.stats.num_output_tokens = 2;
  return made;
}

std::vector<json> chunks(const std::string& stream) {
  std::vector<json> all;
  for (size_t at = 0; (at = stream.find("data: {", at)) != std::string::npos; ++at) {
    all.push_back(json::parse(stream.substr(at + 6, stream.find('\n', at) - at - 6)));
  }
  return all;
}

// A later name is empty, and only there where clients want one.
TEST(OpenAiFormat, EveryPieceOfACallMayHaveAName) {
  for (const bool wanted : {false, true}) {
    OpenAiFormat format(chat_with("{}"), {}, {"id", "m", 1});
    if (wanted) format.name_every_piece();
    const std::string stream =
        format.events(0, output("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":", false)) +
        format.events(0, output(" 1}}\n</tool_call>", true));
    std::vector<std::string> names;
    for (const json& chunk : chunks(stream)) {
      for (const json& call : chunk["choices"][0]["delta"].value("tool_calls", json::array())) {
        names.push_back(call["function"].value("name", "none"));
      }
    }
    ASSERT_GT(names.size(), 1u);
    EXPECT_EQ(names.front(), "f");
    for (size_t i = 1; i < names.size(); ++i) EXPECT_EQ(names[i], wanted ? "" : "none");
  }
}

TEST(OpenAiFormat, ToolCallsComeInPieces) {
  OpenAiFormat format(chat_with("{}"), {}, {"id", "m", 1});
  const std::string text =
      "So: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>";
  std::string stream;
  for (size_t i = 0; i < text.size(); ++i) {
    stream += format.events(0, output(text.substr(i, 1), i + 1 == text.size()));
  }
  stream += format.last_events();
  std::string content;
  std::string arguments;
  std::string name;
  json reason;
  for (const json& chunk : chunks(stream)) {
    const json& choice = chunk["choices"][0];
    content += choice["delta"].value("content", "");
    reason = choice["finish_reason"];
    if (!choice["delta"].contains("tool_calls")) continue;
    const json& call = choice["delta"]["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    name += call["function"].value("name", "");
    arguments += call["function"].value("arguments", "");
  }
  EXPECT_EQ(content, "So: ");
  EXPECT_EQ(name, "f");
  EXPECT_EQ(json::parse(arguments)["a"][1], 2);
  EXPECT_EQ(reason, "tool_calls");
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
}

TEST(OpenAiFormat, ChoicesBeginWithTheirRole) {
  OpenAiFormat format(chat_with(R"({"n": 2, "stream_options": {"include_usage": true}})"), {},
                      {"id", "m", 1});
  std::string stream = format.events(0, output("a", false, 1));
  stream += format.events(0, output("b", true, 0));
  stream += format.events(0, output("c", true, 1));
  stream += format.last_events();
  const std::vector<json> all = chunks(stream);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0]["choices"][0]["index"], 1);
  EXPECT_EQ(all[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(all[2]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_FALSE(all[4]["choices"][0]["delta"].contains("role"));
  EXPECT_EQ(all[5]["usage"]["completion_tokens"], 4);
  EXPECT_FALSE(all[0].contains("usage"));
}

// The chunk of the role holds no token yet, however many the first step made.
TEST(OpenAiFormat, UsageSoFarBeginsWithNoToken) {
  OpenAiFormat format(
      chat_with(R"({"stream_options": {"include_usage": true, "continuous_usage_stats": true}})"),
      {}, {"id", "m", 1});
  std::vector<int> counts;
  for (const json& chunk : chunks(format.events(0, output("a cat", true)))) {
    EXPECT_EQ(chunk["usage"]["prompt_tokens"], 3);
    counts.push_back(chunk["usage"]["completion_tokens"].get<int>());
  }
  EXPECT_EQ(counts, (std::vector<int>{0, 2}));
}

TEST(OpenAiFormat, AnEchoComesBeforeTheAnswer) {
  const OpenAiRequest request = chat_with(R"({"echo": true, "messages": [
      {"role": "user", "content": "x"}, {"role": "assistant", "content": "So it"}]})");
  OpenAiFormat format(request, {}, {"id", "m", 1});
  std::string content;
  for (const json& chunk : chunks(format.events(0, output(" is", true)))) {
    content += chunk["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(content, "So it is");
  OutputSum sum;
  sum.add(output(" is", true).output);
  const json whole = openai_response(request, {&sum}, {}, {"id", "m", 1});
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "So it is");
  EXPECT_TRUE(chat_with(R"({"echo": true})").echoed.empty());
}

// Choice 0 alone has the log-probabilities of the prompt, and another one may begin before it.
TEST(OpenAiFormat, EveryChoiceEchoesTheWholePrompt) {
  const json body =
      json::parse(R"({"prompt": "ab", "n": 2, "echo": true, "logprobs": 0, "stream": true})");
  OpenAiFormat format(parse_openai_request(OpenAiKind::kCompletion, body, {}).value(), {"ab"},
                      {"id", "m", 1});
  ChoiceOutput first = output("c", true, 0);
  first.output.prompt_logprobs = {{{2, -1.0f, 1, "b"}, {}}};
  first.output.logprobs = {{{3, -1.0f, 1, "c"}, {}}};
  ChoiceOutput other = output("d", true, 1);
  other.output.logprobs = {{{4, -1.0f, 1, "d"}, {}}};
  EXPECT_EQ(format.events(0, other), "");
  const std::vector<json> all = chunks(format.events(0, first));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["choices"][0]["logprobs"]["tokens"], (json{"a", "b", "c"}));
  EXPECT_EQ(all[1]["choices"][0]["index"], 1);
  EXPECT_EQ(all[1]["choices"][0]["text"], "abd");
  EXPECT_EQ(all[1]["choices"][0]["logprobs"]["tokens"], (json{"a", "b", "d"}));
  EXPECT_EQ(all[1]["choices"][0]["logprobs"]["text_offset"], (json{0, 1, 2}));
}

TEST(OpenAiFormat, TextThatIsHeldBackMakesNoChunk) {
  OpenAiFormat format(chat_with("{}"), {}, {"id", "m", 1});
  EXPECT_EQ(chunks(format.events(0, output("a", false))).size(), 2u);
  EXPECT_EQ(format.events(0, output("<tool_", false)), "");
}

TEST(OpenAiFormat, Errors) {
  OpenAiFormat format(chat_with("{}"), {}, {"id", "m", 1});
  EXPECT_EQ(json::parse(format.error(not_found("x")))["error"]["code"], 404);
  EXPECT_TRUE(format.error_events(internal_error("x")).ends_with("data: [DONE]\n\n"));
}

}  // namespace
}  // namespace foretoken
