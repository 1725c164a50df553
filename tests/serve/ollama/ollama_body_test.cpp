#include "serve/ollama/ollama_body.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json chat_of(const char* body) { return read_ollama_chat(json::parse(body), 100).value().openai; }

OllamaBody generate_of(const char* body, bool has_template = true) {
  return read_ollama_generate(json::parse(body), has_template, 100).value();
}

TEST(OllamaBody, ChatsStreamUnlessTheySayOtherwise) {
  const char* kMessages = R"({"messages": [{"role": "user", "content": "Hi"}])";
  const auto stream_of = [&](const std::string& more) {
    return chat_of((kMessages + more + "}").c_str())["stream"];
  };
  EXPECT_EQ(stream_of(""), true);
  EXPECT_EQ(stream_of(R"(, "stream": null)"), true);
  EXPECT_EQ(stream_of(R"(, "stream": false)"), false);
}

TEST(OllamaBody, MessagesInOpenAisWords) {
  const json chat = chat_of(R"({"messages": [
    {"role": "assistant", "content": "", "thinking": "hm", "images": null},
    {"role": "tool", "content": "11", "tool_name": "f"}]})");
  EXPECT_EQ(chat["messages"][0],
            json::parse(R"({"role": "assistant", "content": "", "reasoning_content": "hm"})"));
  EXPECT_EQ(chat["messages"][1], json::parse(R"({"role": "tool", "content": "11", "name": "f"})"));
  const json with_image = json::parse(
      R"({"messages": [{"role": "user", "content": "What is it?", "images": ["aGk="]}]})");
  const Result<OllamaBody> refused = read_ollama_chat(with_image, 100);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("message 0: images"), std::string::npos);
}

TEST(OllamaBody, TheContextIsTheServers) {
  const auto read = [](int length) {
    json body = json::parse(R"({"messages": [{"role": "user", "content": "Hi"}],
      "truncate": true, "keep_alive": "5m", "format": "", "options": {"top_k": 3}})");
    body["options"]["num_ctx"] = length;
    return read_ollama_chat(body, 100).value();
  };
  EXPECT_EQ(read(100).openai, json::parse(R"({"messages": [{"role": "user", "content": "Hi"}],
      "options": {"top_k": 3}, "stream": true})"));
  EXPECT_TRUE(read(100).warnings.empty());
  ASSERT_EQ(read(101).warnings.size(), 1u);
  EXPECT_NE(read(101).warnings[0].find("100 tokens"), std::string::npos);
}

TEST(OllamaBody, NothingToAnswerLoadsOrUnloads) {
  for (const char* body : {R"({"model": "m"})", R"({"model": "m", "messages": []})"}) {
    const OllamaBody read = read_ollama_chat(json::parse(body), 100).value();
    EXPECT_TRUE(read.is_empty && read.keeps_model);
    EXPECT_EQ(read.model, "m");
  }
  for (const char* zero : {"0", "\"0\"", "\"0s\"", "0.0"}) {
    const std::string body = std::string(R"({"prompt": "", "keep_alive": )") + zero + "}";
    const OllamaBody read = generate_of(body.c_str());
    EXPECT_TRUE(read.is_empty && !read.keeps_model) << zero;
  }
  for (const char* time : {"-1", "\"10m\"", "300"}) {
    const std::string body = std::string(R"({"keep_alive": )") + time + "}";
    EXPECT_TRUE(generate_of(body.c_str()).keeps_model) << time;
  }
}

TEST(OllamaBody, PromptsAreChatsWhereThereIsATemplate) {
  const char* kBody = R"({"system": "Be brief.", "prompt": "Hi", "think": false})";
  const OllamaBody chat = generate_of(kBody);
  EXPECT_EQ(chat.kind, OpenAiKind::kChat);
  EXPECT_EQ(chat.openai, json::parse(R"({"think": false, "stream": true, "messages": [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]})"));
  const OllamaBody text = generate_of(kBody, false);
  EXPECT_EQ(text.kind, OpenAiKind::kCompletion);
  EXPECT_EQ(text.openai, json::parse(R"({"prompt": "Hi", "stream": true, "max_tokens": -1})"));
}

TEST(OllamaBody, RawPromptsAreCompletions) {
  const OllamaBody read = generate_of(
      R"({"prompt": "a", "raw": true, "logprobs": true, "top_logprobs": 2,
          "options": {"num_predict": 5}})");
  EXPECT_EQ(read.kind, OpenAiKind::kCompletion);
  EXPECT_EQ(read.openai, json::parse(R"({"prompt": "a", "options": {"num_predict": 5},
    "stream": true, "logprobs": 2})"));
  EXPECT_EQ(generate_of(R"({"prompt": "a", "suffix": "b"})").openai["suffix"], "b");
  EXPECT_FALSE(
      generate_of(R"({"prompt": "a", "logprobs": false})", false).openai.contains("logprobs"));
}

TEST(OllamaBody, WhatWouldChangeThePromptIsRefused) {
  for (const char* body :
       {R"({"prompt": "a", "template": "{{ .Prompt }}"})", R"({"prompt": "a", "context": [1, 2]})",
        R"({"prompt": "a", "images": ["aGk="]})", R"({"prompt": "a", "raw": "perhaps"})"}) {
    EXPECT_FALSE(read_ollama_generate(json::parse(body), true, 100).ok()) << body;
  }
  EXPECT_TRUE(generate_of(R"({"prompt": "a", "template": "", "context": [], "images": null})")
                  .warnings.empty());
}

TEST(OllamaBody, TextsToEmbed) {
  const OllamaBody read =
      read_ollama_embed(
          json::parse(R"({"input": ["a", "b"], "truncate": true, "options": {"num_ctx": 9}})"), 100)
          .value();
  EXPECT_EQ(read.openai, json::parse(R"({"input": ["a", "b"], "truncate_prompt_tokens": -1})"));
  const json whole = json::parse(R"({"input": "a", "truncate": false})");
  EXPECT_FALSE(read_ollama_embed(whole, 100).value().openai.contains("truncate_prompt_tokens"));
  EXPECT_EQ(read_ollama_embed(json::parse(R"({"prompt": "a"})"), 100).value().openai["input"], "a");
  EXPECT_TRUE(read_ollama_embed(json::parse(R"({"input": []})"), 100).value().is_empty);
}

TEST(OllamaBody, WhoseChatItIs) {
  EXPECT_TRUE(is_openais_chat(json::parse(R"({"messages": [], "max_tokens": 5})")));
  EXPECT_FALSE(is_openais_chat(json::parse(R"({"messages": [], "stream": false, "options": {}})")));
  EXPECT_EQ(without_latest("llama3:latest"), "llama3");
  EXPECT_EQ(without_latest("llama3:8b"), "llama3:8b");
}

}  // namespace
}  // namespace foretoken
