#include "serve/routes/chat_batch.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

json conversation(const std::string& text) {
  return json::array({{{"role", "user"}, {"content", text}}});
}

class ChatBatch : public test::ServeRig {
 protected:
  static constexpr const char* kPath = "/v1/chat/completions/batch";
  std::string fault(const json& body, int status = 400) {
    return post(kPath, body, status)["error"]["message"];
  }
};

TEST_F(ChatBatch, EachConversationIsAChoice) {
  json fields = {{"max_tokens", 6}, {"temperature", 0}, {"logprobs", true}, {"model", "tiny"}};
  std::vector<json> alone;
  json batch = fields;
  for (const char* text : {"Hi", "Once upon a time", "And?"}) {
    fields["messages"] = conversation(text);
    alone.push_back(post("/v1/chat/completions", fields));
    batch["messages"].push_back(conversation(text));
  }
  const json answer = post(kPath, batch);
  EXPECT_EQ(answer["object"], "chat.completion");
  ASSERT_EQ(answer["choices"].size(), 3u);
  int64_t num_tokens = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    json choice = answer["choices"][i];
    EXPECT_EQ(choice["index"], i);
    choice["index"] = 0;
    EXPECT_EQ(choice, alone[i]["choices"][0]);
    num_tokens += alone[i]["usage"]["total_tokens"].get<int64_t>();
  }
  EXPECT_EQ(answer["usage"]["total_tokens"], num_tokens);
}

TEST_F(ChatBatch, WhatBatchesCannotHaveIsNamed) {
  const json one = json::array({conversation("Hi")});
  EXPECT_NE(fault({{"messages", conversation("Hi")}}).find("list of conversations"),
            std::string::npos);
  EXPECT_NE(fault({{"messages", json::array()}}).find("list of conversations"), std::string::npos);
  EXPECT_NE(fault({{"messages", one}, {"stream", true}}).find("'stream'"), std::string::npos);
  EXPECT_NE(fault({{"messages", one}, {"n", 2}}).find("'n' must be 1"), std::string::npos);
  EXPECT_NE(fault({{"messages", one}, {"top_p", "x"}}).find("'top_p'"), std::string::npos);
  EXPECT_NE(fault({{"messages", one}, {"model", "none"}}, 404).find("`none`"), std::string::npos);
  const json tools = json::array(
      {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", json::object()}}}}});
  EXPECT_NE(fault({{"messages", one}, {"tools", tools}, {"tool_choice", "none"}}).find("'tools'"),
            std::string::npos);
  EXPECT_NE(fault({{"messages", {conversation("Hi"), json::array()}}}).find("conversation 2: "),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
