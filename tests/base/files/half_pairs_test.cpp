#include "base/files/half_pairs.h"

#include <gtest/gtest.h>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

TEST(HalfPairs, BecomeTheReplacementCharacter) {
  EXPECT_EQ(without_half_pairs(R"("a\ud83d")"), R"("a\ufffd")");
  EXPECT_EQ(without_half_pairs(R"("\uDE00\ud83d\uDE00\uD83D\n")"),
            R"("\ufffd\ud83d\uDE00\ufffd\n")");
  for (const char* same :
       {"", "x", R"("\\ud83d")", R"("\ud83d\ude00")", R"("\u00e4")", R"("\ud8)"}) {
    EXPECT_EQ(without_half_pairs(same), same);
  }
  EXPECT_TRUE(may_have_half_pairs(R"("\uD83D")"));
  EXPECT_FALSE(may_have_half_pairs(R"("\u00e4 ud83d")"));
}

TEST(HalfPairs, AreReadInJson) {
  const Result<nlohmann::json> object =
      parse_json_object(R"({"a": "x\udc00", "b": "\ud83d\ude00"})", "it");
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_EQ(object.value()["a"].get<std::string>(), "x\xEF\xBF\xBD");
  EXPECT_EQ(object.value()["b"].get<std::string>(), "\xF0\x9F\x98\x80");
  EXPECT_EQ(parsed_json(R"("\ud83d")").get<std::string>(), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace foretoken
