#include "serve/flow/conversation_store.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json item(const std::string& id, size_t num_bytes = 1) {
  return {{"id", id}, {"text", std::string(num_bytes, 'x')}};
}

std::vector<std::string> ids(const std::vector<json>& items) {
  std::vector<std::string> all;
  for (const json& one : items) all.push_back(one.at("id"));
  return all;
}

using Ids = std::vector<std::string>;

TEST(ConversationStore, ItemsFollowEachOtherAndAreFound) {
  ConversationStore store(4);
  store.create({"a", 7, {{"topic", "x"}}, {item("1"), item("2")}});
  const auto added = store.add("a", {item("3")});
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(ids(*added), Ids{"3"});
  EXPECT_EQ(ids(store.find("a")->items), (Ids{"1", "2", "3"}));
  EXPECT_EQ(store.find("a")->created, 7);
  EXPECT_TRUE(store.erase_item("a", "2"));
  EXPECT_FALSE(store.erase_item("a", "2"));
  EXPECT_EQ(ids(store.find("a")->items), (Ids{"1", "3"}));
  EXPECT_TRUE(store.set_metadata("a", {{"topic", "y"}}));
  EXPECT_EQ(store.find("a")->metadata["topic"], "y");
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.find("a").has_value());
}

TEST(ConversationStore, OneThatIsNotThereTakesNothing) {
  ConversationStore store(4);
  EXPECT_FALSE(store.add("a", {item("1")}).has_value());
  EXPECT_FALSE(store.set_metadata("a", json::object()));
  EXPECT_FALSE(store.erase("a"));
  EXPECT_FALSE(store.erase_item("a", "1"));
  EXPECT_EQ(store.size(), 0U);
}

TEST(ConversationStore, AnIdIsThereOnce) {
  ConversationStore store(4);
  store.create({"a", 0, json::object(), {item("1"), item("1")}});
  EXPECT_EQ(ids(store.find("a")->items), (Ids{"1", "1_2"}));
  EXPECT_EQ(ids(*store.add("a", {item("1"), item("2"), item("2")})), (Ids{"1_3", "2", "2_2"}));
}

TEST(ConversationStore, TheLeastRecentlyUsedIsForgotten) {
  ConversationStore store(2);
  store.create({"a", 0, json::object(), {}});
  store.create({"b", 0, json::object(), {}});
  EXPECT_TRUE(store.find("a").has_value());
  store.create({"c", 0, json::object(), {}});
  EXPECT_FALSE(store.find("b").has_value());
  EXPECT_TRUE(store.find("a").has_value());
  EXPECT_TRUE(store.find("c").has_value());
}

TEST(ConversationStore, BytesAreBounded) {
  ConversationStore store(100, 4500);
  for (int i = 0; i < 8; ++i) {
    store.create({std::to_string(i), 0, json::object(), {item("1", 1000)}});
  }
  EXPECT_EQ(store.size(), 4U);
  EXPECT_FALSE(store.find("3").has_value());
  EXPECT_TRUE(store.find("4").has_value());  // the last one to go from now on
  EXPECT_TRUE(store.add("7", {item("2", 1000)}).has_value());
  EXPECT_EQ(store.size(), 3U);
  EXPECT_FALSE(store.find("5").has_value());
  // What was forgotten makes room.
  EXPECT_TRUE(store.erase_item("7", "2"));
  store.create({"8", 0, json::object(), {item("1", 1000)}});
  EXPECT_EQ(store.size(), 4U);
  // One that is too long by itself is not kept.
  EXPECT_TRUE(store.add("8", {item("2", 5000)}).has_value());
  EXPECT_EQ(store.size(), 0U);
}

}  // namespace
}  // namespace foretoken
