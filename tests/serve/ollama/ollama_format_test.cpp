#include "serve/ollama/ollama_format.h"

#include <gtest/gtest.h>

#include <sstream>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest chat_request(const char* more) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  defaults.tool_parser = "hermes";
  defaults.reasoning_parser = "qwen3";
  json body = json::parse(R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true})");
  body.update(json::parse(more));
  return parse_openai_request(OpenAiKind::kChat, body, defaults).value();
}

OllamaFormat format_of(OllamaAnswer kind, const char* more = "{}") {
  OpenAiLabel label;
  label.model = "m:latest";
  label.submitted = std::chrono::steady_clock::now();
  return OllamaFormat(kind, chat_request(more), label);
}

constexpr const char* kTools =
    R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]})";

RequestOutput output_of(const char* text, bool finished = false) {
  RequestOutput output;
  output.text = text;
  output.token_ids = {5, 6};
  output.stats.num_prompt_tokens = 4;
  output.stats.num_output_tokens = 2;
  output.finished = finished;
  output.finish_reason = FinishReason::kStop;
  return output;
}

std::vector<json> lines_of(OllamaFormat& format, const std::vector<RequestOutput>& outputs) {
  std::string text;
  for (const RequestOutput& output : outputs) {
    ChoiceOutput news;
    news.add(output);
    text += format.events(0, news);
  }
  text += format.last_events();
  std::vector<json> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(OllamaFormat, AStreamOfLinesEndsWithCounts) {
  OllamaFormat format = format_of(OllamaAnswer::kChat);
  EXPECT_TRUE(format.streams_lines());
  const std::vector<json> lines =
      lines_of(format, {output_of("<think>hm"), output_of("</think>Hel"), output_of("lo", true)});
  std::string thinking;
  std::string content;
  for (const json& line : lines) {
    EXPECT_EQ(line["model"], "m:latest");
    EXPECT_EQ(line["created_at"].get<std::string>().size(), 27u);
    EXPECT_EQ(line["message"]["role"], "assistant");
    EXPECT_EQ(line["done"], &line == &lines.back());
    thinking += line["message"].value("thinking", "");
    content += line["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(content, "Hello");
  const json& last = lines.back();
  EXPECT_EQ(last["message"]["content"], "");
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_EQ(last["prompt_eval_count"], 4);
  EXPECT_EQ(last["eval_count"], 2);
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"}) {
    EXPECT_GT(last[name], 0) << name;
  }
}

TEST(OllamaFormat, CallsAreToldWhole) {
  OllamaFormat format = format_of(OllamaAnswer::kChat, kTools);
  const std::vector<json> lines =
      lines_of(format, {output_of("<tool_call>\n{\"name\": \"f\", \"argu"),
                        output_of("ments\": {\"a\": [1, "), output_of("2]}}\n</tool_call>", true)});
  json calls = json::array();
  for (const json& line : lines) {
    for (const json& call : line["message"].value("tool_calls", json::array())) {
      calls.push_back(call);
    }
  }
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0]["id"].get<std::string>().empty());
  EXPECT_EQ(calls[0]["function"],
            json::parse(R"({"index": 0, "name": "f", "arguments": {"a": [1, 2]}})"));
}

TEST(OllamaFormat, WholeAnswers) {
  OllamaFormat format = format_of(OllamaAnswer::kGenerate);
  RequestOutput output = output_of("<think>hm</think>Hello", true);
  output.finish_reason = FinishReason::kLength;
  output.logprobs.push_back({{5, -0.5f, 1, "t"}, {{5, -0.5f, 1, "t"}}});
  OutputSum sum;
  sum.add(output);
  const json answer = json::parse(format.whole({&sum}));
  EXPECT_EQ(answer["response"], "Hello");
  EXPECT_EQ(answer["thinking"], "hm");
  EXPECT_EQ(answer["done"], true);
  EXPECT_EQ(answer["done_reason"], "length");
  EXPECT_EQ(answer["logprobs"][0]["token"], "t");
  EXPECT_FALSE(answer.contains("message"));
}

TEST(OllamaFormat, RawTextIsToldAsItIs) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  const json body = json::parse(R"({"prompt": "a", "stream": true})");
  OllamaFormat format(OllamaAnswer::kGenerate,
                      parse_openai_request(OpenAiKind::kCompletion, body, defaults).value(), {});
  EXPECT_EQ(lines_of(format, {output_of("<think>x", true)})[0]["response"], "<think>x");
}

TEST(OllamaFormat, Errors) {
  OllamaFormat format = format_of(OllamaAnswer::kChat);
  const ServeError error(404, not_found("there is no such model"));
  const json told = {{"error", "there is no such model"}};
  EXPECT_EQ(json::parse(format.error(error)), told);
  EXPECT_EQ(format.error_events(error), told.dump() + "\n");
  EXPECT_EQ(ollama_error(error), told);
}

TEST(OllamaFormat, Vectors) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  const json body = json::parse(R"({"input": ["a", "b"]})");
  const OpenAiRequest request =
      parse_openai_request(OpenAiKind::kEmbedding, body, defaults).value();
  OutputSum sum;
  RequestOutput output = output_of("", true);
  output.embedding = {1.0f, 0.0f};
  sum.add(output);
  OllamaEmbedFormat many(false, request, {});
  const json answer = json::parse(many.whole({&sum, &sum}));
  EXPECT_EQ(answer["embeddings"], json::parse("[[1.0, 0.0], [1.0, 0.0]]"));
  EXPECT_EQ(answer["prompt_eval_count"], 8);
  OllamaEmbedFormat one(true, request, {});
  EXPECT_EQ(json::parse(one.whole({&sum})), json::parse(R"({"embedding": [1.0, 0.0]})"));
}

TEST(OllamaFormat, WithoutAPromptTheModelIsLoaded) {
  const json loaded = ollama_load_answer(OllamaAnswer::kChat, "m", true);
  EXPECT_EQ(loaded["message"]["content"], "");
  EXPECT_EQ(loaded["done_reason"], "load");
  EXPECT_EQ(ollama_load_answer(OllamaAnswer::kGenerate, "m", false)["done_reason"], "unload");
  EXPECT_EQ(ollama_load_answer(OllamaAnswer::kGenerate, "m", false)["response"], "");
}

}  // namespace
}  // namespace foretoken
