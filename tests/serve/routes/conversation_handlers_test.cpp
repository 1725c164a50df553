#include "serve/routes/conversation_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class ConversationHandlers : public test::ServeRig {
 protected:
  json ask(const std::string& method, const std::string& path, int status = 200) {
    const auto exchange = send(method, path);
    EXPECT_EQ(exchange->status(), status) << exchange->body();
    return json::parse(exchange->body());
  }
  std::string create(const json& body = json::object()) {
    return "/v1/conversations/" + post("/v1/conversations", body)["id"].get<std::string>();
  }
  // Items oldest first.
  std::vector<json> items(const std::string& path) {
    const json data = ask("GET", path + "/items")["data"];
    return {data.rbegin(), data.rend()};
  }
  json respond(const std::string& path, const json& more) {
    json body = {{"conversation", path.substr(path.rfind('/') + 1)},
                 {"max_output_tokens", 6},
                 {"temperature", 0}};
    body.update(more);
    return post("/v1/responses", body);
  }
};

const json kHello = {{"role", "user"}, {"content", "Hello"}};

TEST_F(ConversationHandlers, AConversationIsKeptChangedAndForgotten) {
  const std::string path = create({{"metadata", {{"topic", "x"}}}, {"items", {kHello}}});
  const json made = ask("GET", path);
  EXPECT_EQ(made["object"], "conversation");
  EXPECT_EQ(made["metadata"]["topic"], "x");
  EXPECT_GT(made["created_at"].get<int64_t>(), 0);
  EXPECT_EQ(post(path, {{"metadata", {{"topic", "y"}}}})["metadata"]["topic"], "y");
  EXPECT_EQ(ask("GET", path)["metadata"]["topic"], "y");
  const json gone = ask("DELETE", path);
  EXPECT_EQ(gone["object"], "conversation.deleted");
  ask("GET", path, 404);
  ask("DELETE", path, 404);
  ask("GET", path + "/items", 404);
  post(path + "/items", {{"items", {kHello}}}, 404);
}

TEST_F(ConversationHandlers, ItemsAreAddedFoundAndForgotten) {
  const std::string path = create();
  const json added = post(path + "/items", {{"items", {kHello, kHello}}});
  EXPECT_EQ(added["data"].size(), 2U);
  const std::string id = added["last_id"];
  EXPECT_EQ(ask("GET", path + "/items/" + id), added["data"][1]);
  EXPECT_EQ(ask("DELETE", path + "/items/" + id)["object"], "conversation");
  EXPECT_EQ(items(path).size(), 1U);
  ask("GET", path + "/items/" + id, 404);
  ask("DELETE", path + "/items/" + id, 404);
}

TEST_F(ConversationHandlers, AResponseGoesOnWithAConversation) {
  const std::string path = create({{"items", {kHello}}});
  const json first = respond(path, {{"input", "And?"}});
  EXPECT_EQ(first["conversation"]["id"], path.substr(path.rfind('/') + 1));
  std::vector<json> kept = items(path);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[1]["content"][0]["text"], "And?");
  EXPECT_EQ(kept[2], first["output"][0]);
  // The prompt is that of a client that keeps the items itself.
  json sent = json::array();
  for (const json& item : kept) sent.push_back(item);
  sent.push_back({{"role", "user"}, {"content", "More."}});
  const json own =
      post("/v1/responses", {{"input", sent}, {"max_output_tokens", 6}, {"temperature", 0}});
  const json second = respond(path, {{"input", "More."}});
  EXPECT_EQ(second["output"][0]["content"], own["output"][0]["content"]);
  EXPECT_EQ(second["usage"]["input_tokens"], own["usage"]["input_tokens"]);
  EXPECT_EQ(items(path).size(), 5U);
}

TEST_F(ConversationHandlers, StreamsAndBackgroundAreAddedToo) {
  const std::string path = create();
  const std::string id = path.substr(path.rfind('/') + 1);
  const json body = {{"conversation", {{"id", id}}},
                     {"input", "Hi"},
                     {"max_output_tokens", 4},
                     {"stream", true},
                     {"store", false}};
  EXPECT_EQ(send("POST", "/v1/responses", body.dump())->status(), 200);
  EXPECT_EQ(items(path).size(), 2U);
  respond(path, {{"background", true}, {"input", "And?"}});
  ASSERT_TRUE(wait_idle());
  EXPECT_TRUE(test::eventually([&] { return items(path).size() == 4U; }));
  respond(path, json::object());  // without a word
  EXPECT_EQ(items(path).size(), 5U);
}

TEST_F(ConversationHandlers, ReferencesToWhatIsThereAddNothing) {
  const std::string path = create({{"items", {kHello}}});
  const json named = {{"type", "item_reference"}, {"id", items(path)[0]["id"]}};
  const json response = respond(path, {{"input", json::array({named})}});
  EXPECT_FALSE(response.contains("warnings")) << response.dump();
  EXPECT_EQ(items(path).size(), 2U);
}

TEST_F(ConversationHandlers, WhatIsWrongIsTold) {
  const auto fault = [&](const std::string& path, const json& body) {
    return post(path, body, 400)["error"]["message"].get<std::string>();
  };
  EXPECT_NE(fault("/v1/conversations", {{"metadata", {{"a", 1}}}}).find("'metadata'"),
            std::string::npos);
  const std::string path = create();
  EXPECT_NE(fault(path + "/items", json::object()).find("'items' is missing"), std::string::npos);
  EXPECT_NE(fault(path, {{"metadata", 3}}).find("'metadata'"), std::string::npos);
  EXPECT_NE(fault("/v1/responses", {{"input", "x"}, {"conversation", 3}}).find("'conversation'"),
            std::string::npos);
  EXPECT_NE(
      fault("/v1/responses", {{"input", "x"}, {"conversation", "c"}, {"previous_response_id", "r"}})
          .find("give one"),
      std::string::npos);
  const json missing = post("/v1/responses", {{"input", "x"}, {"conversation", "conv_x"}}, 404);
  EXPECT_EQ(missing["error"]["param"], "conversation");
  EXPECT_NE(fault("/v1/responses", {{"conversation", path.substr(path.rfind('/') + 1)}})
                .find("'input' is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
