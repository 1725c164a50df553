#include "serve/fields/request_body.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

std::string error(const std::string& body) {
  const auto parsed = parse_request_body(body);
  return parsed.ok() ? "" : parsed.status().message();
}

void expect_error(const std::string& body, const std::string& part) {
  EXPECT_NE(error(body).find(part), std::string::npos) << error(body);
}

TEST(RequestBody, AnObjectIsParsed) {
  const auto body = parse_request_body(" {\"a\": [1, {\"b\": \"}]\\\"\"}]} ");
  ASSERT_TRUE(body.ok()) << body.status().message();
  EXPECT_EQ(body.value()["a"][1]["b"], "}]\"");
}

// Clients other than the Python package send what it lays over the body.
TEST(RequestBody, ExtraBodyLiesUnderTheBody) {
  const auto body = parse_request_body(
      R"({"top_k": 4, "seed": null, "extra_body": {"top_k": 9, "seed": 3, "min_p": 0.1}})");
  ASSERT_TRUE(body.ok()) << body.status().message();
  EXPECT_EQ(body.value(), nlohmann::ordered_json::parse(R"({"top_k":4,"seed":3,"min_p":0.1})"));
  EXPECT_TRUE(parse_request_body(R"({"extra_body": 3})").value().contains("extra_body"));
}

TEST(RequestBody, WhatIsNoObjectIsRefused) {
  expect_error("", "the body is empty");
  expect_error("  \n", "the body is empty");
  expect_error("[1]", "must be a JSON object");
  expect_error("{\"a\": 1", "not valid JSON");
  expect_error("{\"a\": 1e999}", "number overflow");
  expect_error("{\"a\": \"\xff\xfe\"}", "not valid JSON");
  expect_error("{\"a\": 1, \"a\": 2}", "appears twice");
}

TEST(RequestBody, HalvesOfSurrogatePairsAreReplaced) {
  const auto text_of = [](const std::string& escapes) {
    const auto body = parse_request_body("{\"a\": \"" + escapes + "\"}");
    return body.ok() ? body.value()["a"].get<std::string>() : body.status().message();
  };
  EXPECT_EQ(text_of(R"(x\ud83dy)"), "x\xEF\xBF\xBDy");
  EXPECT_EQ(text_of(R"(\uDE00\uD83D)"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(text_of(R"(\ud83d\ud83d\ude00)"), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  EXPECT_EQ(text_of(R"(\\ud83d)"), R"(\ud83d)");
  EXPECT_EQ(text_of(R"(\ud83d\n)"), "\xEF\xBF\xBD\n");
  expect_error(R"({"a": "\ud83)", "not valid JSON");
}

TEST(RequestBody, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(error(nested(100)), "");
  expect_error(nested(200), "nested deeper than 128");
  // Far deeper than any stack.
  expect_error("{\"a\": " + std::string(20'000'000, '['), "nested deeper than 128");
}

TEST(RequestBody, TheNumberOfValuesIsBounded) {
  std::string zeros = "{\"a\": [0";
  for (int i = 0; i < 4'100'000; ++i) zeros += ",0";
  expect_error(zeros + "]}", "more than 4000000 values");
}

TEST(RequestBody, ObjectsWithManyMembersAreBounded) {
  std::string members = "{";
  for (int i = 0; i < 20'000; ++i) members += "\"k" + std::to_string(i) + "\":0,";
  expect_error(members + "\"end\":0}", "too many members");
}

TEST(RequestBody, TextIsAlwaysUtf8) {
  EXPECT_EQ(json_text({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

TEST(RequestBody, WhatIsCopiedForEachEntryIsBounded) {
  const nlohmann::ordered_json body = {{"prompt", {"a", "b"}},
                                       {"grammar", std::string(size_t{1} << 20, 'x')}};
  EXPECT_TRUE(check_copies(body, "prompt", 200).ok());
  EXPECT_TRUE(check_copies(body, "grammar", size_t{1} << 20).ok());
  const Status status = check_copies(body, "prompt", 4096);
  EXPECT_NE(status.message().find("'prompt' has 4096 entries, too many"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
