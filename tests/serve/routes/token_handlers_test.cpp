#include "serve/routes/token_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class TokenHandlers : public test::ServeRig {};

TEST_F(TokenHandlers, ThereAndBack) {
  const json tokens = post("/tokenize", {{"prompt", "Hello world"}, {"return_token_strs", true}});
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], 512);
  std::string joined;
  for (const json& text : tokens["token_strs"]) joined += text.get<std::string>();
  EXPECT_NE(joined.find("Hello world"), std::string::npos);
  const json text = post("/detokenize", {{"tokens", tokens["tokens"]}});
  EXPECT_NE(text["prompt"].get<std::string>().find("Hello world"), std::string::npos);
}

TEST_F(TokenHandlers, ChatsAreRendered) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json chat = post("/tokenize", {{"messages", messages}});
  const json answer = post("/v1/chat/completions", {{"messages", messages}, {"max_tokens", 1}});
  EXPECT_EQ(chat["count"], answer["usage"]["prompt_tokens"]);
  EXPECT_TRUE(chat["token_strs"].is_null());
}

TEST_F(TokenHandlers, ContentIsLlamas) {
  const std::string text = "A \xF0\x9F\xA6\x84!";
  const json tokens = post("/tokenize", {{"content", text}});
  EXPECT_EQ(tokens, (json{{"tokens", post("/tokenize", {{"prompt", text}})["tokens"]}}));
  EXPECT_EQ(post("/detokenize", tokens)["content"], text);
  const json pieces = post("/tokenize", {{"content", text}, {"with_pieces", true}})["tokens"];
  std::string joined;
  for (const json& piece : pieces) {
    if (piece["piece"].is_string()) joined += piece["piece"].get<std::string>();
    if (!piece["piece"].is_array()) continue;
    for (const json& byte : piece["piece"]) joined += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(joined, text);
  post("/tokenize", {{"content", text}, {"parse_special", false}}, 400);
}

TEST_F(TokenHandlers, Errors) {
  EXPECT_NE(post("/tokenize", json::object(), 400)["error"]["message"].get<std::string>().find(
                "'prompt' is missing"),
            std::string::npos);
  post("/tokenize", {{"prompt", "a"}, {"messages", json::array()}}, 400);
  post("/tokenize", {{"prompt", "a"}, {"model", "nope"}}, 404);
  post("/detokenize", {{"tokens", {-1}}}, 400);
  post("/detokenize", {{"tokens", {99999999}}}, 400);
  post("/detokenize", json::object(), 400);
}

TEST_F(TokenHandlers, HugeTextsAreNotReadWhole) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "a ";
  for (const char* name : {"prompt", "content", "inputs"}) {
    const json refused = post("/tokenize", {{name, text}}, 400);
    EXPECT_NE(refused.dump().find("send it in parts"), std::string::npos) << name;
  }
}

TEST_F(TokenHandlers, TokenizerInfo) {
  const auto info = send("GET", "/tokenizer_info");
  EXPECT_EQ(info->status(), 200);
  const json told = json::parse(info->body());
  EXPECT_TRUE(told.contains("tokenizer_class")) << info->body();
  EXPECT_EQ(told["chat_template"], engine().chat_template(false)->source);
}

}  // namespace
}  // namespace foretoken
