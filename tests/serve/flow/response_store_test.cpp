#include "serve/flow/response_store.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

StoredResponse stored(int number, size_t num_bytes = 1) {
  return {{{"number", number}, {"text", std::string(num_bytes, 'x')}},
          nlohmann::ordered_json::array()};
}

TEST(ResponseStore, ForgetsTheOldest) {
  ResponseStore store(2);
  store.put("a", stored(1));
  store.put("b", stored(2));
  store.put("a", stored(3));  // replaced where it stands
  store.put("c", stored(4));
  EXPECT_EQ(store.size(), 2u);
  EXPECT_FALSE(store.find("a").has_value());
  EXPECT_EQ(store.find("b")->response["number"], 2);
  EXPECT_EQ(store.find("c")->response["number"], 4);
}

TEST(ResponseStore, AReplacedOneIsCountedOnce) {
  ResponseStore store(10, 4000);
  for (int i = 0; i < 20; ++i) store.put("a", stored(i, 1000));
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.find("a")->response["number"], 19);
}

TEST(ResponseStore, BytesAreBounded) {
  ResponseStore store(1000, 4500);  // the fifth of these is too much
  for (int i = 0; i < 8; ++i) store.put(std::to_string(i), stored(i, 1000));
  EXPECT_EQ(store.size(), 4u);
  EXPECT_TRUE(store.find("7").has_value());
  EXPECT_FALSE(store.find("3").has_value());
}

StoredResponse with_item(const std::string& id) {
  return {{{"output", {{{"id", id}, {"type", "message"}}}}}, nlohmann::ordered_json::array()};
}

TEST(ResponseStore, ItemsAreFoundAsLongAsTheirResponse) {
  ResponseStore store(2);
  store.put("a", with_item("msg_1"));
  store.put("b", with_item("msg_2"));
  EXPECT_EQ((*store.find_item("msg_2"))["id"], "msg_2");
  store.put("a", with_item("msg_3"));
  EXPECT_FALSE(store.find_item("msg_1").has_value());
  EXPECT_TRUE(store.find_item("msg_3").has_value());
  store.put("c", stored(1));
  EXPECT_FALSE(store.find_item("msg_3").has_value());
  EXPECT_TRUE(store.erase("b"));
  EXPECT_FALSE(store.find_item("msg_2").has_value());
}

StoredResponse running() { return {{{"status", "queued"}}, nlohmann::ordered_json::array(), true}; }

StoredResponse completed() {
  return {{{"status", "completed"}}, nlohmann::ordered_json::array(), false};
}

TEST(ResponseStore, WhatRunsIsForgottenLast) {
  ResponseStore store(2);
  store.put("runs", running());
  for (int i = 0; i < 5; ++i) store.put(std::to_string(i), stored(i));
  EXPECT_EQ(store.size(), 2u);
  EXPECT_TRUE(store.find("runs").has_value());
  EXPECT_TRUE(store.find("4").has_value());
  for (int i = 0; i < 5; ++i) store.put("runs too " + std::to_string(i), running());
  EXPECT_EQ(store.size(), 2u);
  EXPECT_FALSE(store.find("runs").has_value());
  store.finish("runs", completed());
  EXPECT_FALSE(store.find("runs").has_value());
}

TEST(ResponseStore, OneThatRunsEnds) {
  ResponseStore store(2);
  store.put("a", running());
  store.finish("a", completed());
  EXPECT_EQ(store.find("a")->response["status"], "completed");
  EXPECT_FALSE(store.find("a")->running);
  store.finish("a", running());  // once only
  EXPECT_EQ(store.find("a")->response["status"], "completed");
  EXPECT_FALSE(store.cancel("a"));
}

TEST(ResponseStore, CancelledOnesStaySo) {
  ResponseStore store(2);
  store.put("a", running());
  EXPECT_TRUE(store.cancel("a"));
  EXPECT_EQ(store.find("a")->response["status"], "cancelled");
  store.finish("a", completed());
  EXPECT_EQ(store.find("a")->response["status"], "cancelled");
  EXPECT_FALSE(store.cancel("none"));
}

TEST(ResponseStore, ErasedOnesDoNotComeBack) {
  ResponseStore store(2);
  store.put("a", running());
  EXPECT_TRUE(store.erase("a"));
  store.finish("a", completed());
  EXPECT_EQ(store.size(), 0u);
  EXPECT_FALSE(store.erase("a"));
}

}  // namespace
}  // namespace foretoken
