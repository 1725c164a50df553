#include "serve/response_store.h"

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
  ResponseStore store(10);
  for (int i = 0; i < 20; ++i) store.put("a", stored(i, size_t{20} << 20));
  EXPECT_EQ(store.find("a")->response["number"], 19);
}

TEST(ResponseStore, BytesAreBounded) {
  ResponseStore store(1000);
  for (int i = 0; i < 8; ++i) store.put(std::to_string(i), stored(i, size_t{60} << 20));
  EXPECT_EQ(store.size(), 4u);
  EXPECT_TRUE(store.find("7").has_value());
  EXPECT_FALSE(store.find("3").has_value());
}

}  // namespace
}  // namespace foretoken
