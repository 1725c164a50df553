#include "serve/routes/ollama_handlers.h"

#include <gtest/gtest.h>

#include <sstream>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class OllamaHandlers : public test::ServeRig {
 protected:
  static json ask(json more = json::object()) {
    json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                 {"stream", false},
                 {"options", {{"temperature", 0}, {"num_predict", 6}}}};
    body.update(more);
    return body;
  }

  std::vector<json> lines(const std::string& path, const json& body) {
    const auto exchange = send("POST", path, body.dump());
    EXPECT_EQ(exchange->header("X-Accel-Buffering"), "no");
    std::vector<json> all;
    std::istringstream text(exchange->body());
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
  }
};

TEST_F(OllamaHandlers, ChatsAreThoseOfOpenAi) {
  const json answer = post("/api/chat", ask());
  const json openai =
      post("/v1/chat/completions",
           {{"messages", ask()["messages"]}, {"temperature", 0}, {"max_tokens", 6}});
  EXPECT_EQ(answer["message"]["content"], openai["choices"][0]["message"]["content"]);
  EXPECT_EQ(answer["eval_count"], 6);
  EXPECT_EQ(answer["done_reason"], "length");
  EXPECT_FALSE(answer.contains("warnings"));
  std::string text;
  for (const json& line : lines("/api/chat", ask({{"stream", nullptr}}))) {
    text += line["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(answer["message"]["content"], text);
  // As llama-server has it.
  EXPECT_TRUE(post("/api/chat", ask({{"max_tokens", 2}})).contains("choices"));
}

TEST_F(OllamaHandlers, PromptsAreChatsOrRaw) {
  json body = ask({{"prompt", "Once upon a time"}, {"raw", true}});
  body.erase("messages");
  const json raw = post("/api/generate", body);
  const json openai = post("/v1/completions",
                           {{"prompt", "Once upon a time"}, {"temperature", 0}, {"max_tokens", 6}});
  EXPECT_EQ(raw["response"], openai["choices"][0]["text"]);
  body["raw"] = false;
  body["prompt"] = "Hi";
  EXPECT_EQ(post("/api/generate", body)["response"],
            post("/api/chat", ask())["message"]["content"]);
  body["context"] = {1, 2};
  EXPECT_TRUE(post("/api/generate", body, 400)["error"].is_string());
}

TEST_F(OllamaHandlers, Names) {
  const std::string name = context().model_name();
  for (const std::string& asked : {name, name + ":latest"}) {
    EXPECT_EQ(post("/api/chat", ask({{"model", asked}}))["model"], asked);
    EXPECT_TRUE(post("/api/show", {{"model", asked}}).contains("model_info"));
    EXPECT_EQ(post("/api/pull", {{"name", asked}})["status"], "success");
    EXPECT_EQ(post("/api/generate", {{"model", asked}})["done_reason"], "load");
  }
  for (const char* path : {"/api/chat", "/api/generate", "/api/show", "/api/pull", "/api/embed"}) {
    EXPECT_TRUE(post(path, {{"model", "nowhere"}}, 404)["error"].is_string()) << path;
  }
  EXPECT_TRUE(post("/api/create", {{"model", "other"}}, 501)["error"].is_string());
}

TEST_F(OllamaHandlers, Embeddings) {
  const json one = post("/v1/embeddings", {{"input", "a cat"}})["data"][0]["embedding"];
  const json two = post("/api/embed", {{"input", {"a cat", "a dog"}}});
  ASSERT_EQ(two["embeddings"].size(), 2u);
  EXPECT_EQ(two["embeddings"][0], one);
  EXPECT_EQ(post("/api/embeddings", {{"prompt", "a cat"}})["embedding"], one);
  EXPECT_EQ(post("/api/embed", {{"input", json::array()}})["embeddings"], json::array());
}

TEST_F(OllamaHandlers, WhatRuns) {
  const json running = ollama_running_body(context());
  ASSERT_EQ(running["models"].size(), context().config.model_names.size());
  EXPECT_EQ(running["models"][0]["model"], context().model_name());
  EXPECT_EQ(running["models"][0]["context_length"], engine().info().max_model_len);
}

TEST_F(OllamaHandlers, ALongPromptIsAnErrorInItsForm) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "cat ";
  json body = ask();
  body["messages"][0]["content"] = text;
  EXPECT_NE(post("/api/chat", body, 400)["error"].get<std::string>().find("too long"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
