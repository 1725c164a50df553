#include "chat/scan/python_scan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

TEST(PythonScan, Literals) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "1"},
      {" -2.5e3 ", "-2.5e3"},
      {"+7", "7"},
      {".5", "0.5"},
      {"1.", "1.0"},
      {"True", "true"},
      {"None", "null"},
      {"'a'", "\"a\""},
      {"\"it's\"", "\"it's\""},
      {"(1, 2)", "[1, 2]"},
      {"[]", "[]"},
      {"[1, [2, {}],]", "[1, [2, {}]]"},
      {"{'a': 1, \"b\": (True,)}", R"({"a": 1, "b": [true]})"},
      {R"('\x41\101\n\\\'\U0001F980')", "\"AA\\n\\\\'🦀\""},
      {R"('\ud83d\ude00')", R"("\ud83d\ude00")"},
      {R"('\q')", R"("\\q")"},
  };
  for (const auto& [text, json] : cases) {
    EXPECT_EQ(python_as_json(text), json);
    EXPECT_FALSE(nlohmann::json::parse(json, nullptr, false).is_discarded()) << json;
  }
}

TEST(PythonScan, Flaws) {
  for (const char* text :
       {"",     "a",     "1 2", "[1 2]",   "{1: 2}",    "{'a' 1}",         "[1",        "'a", "0x",
        "01",   "1_000", "[,]", "{'a': }", R"('\xg0')", R"('\U00110000')", "lambda: 1", "-",  "[1}",
        "f(x)", "1e999x"}) {
    EXPECT_EQ(python_as_json(text), "") << text;
  }
  EXPECT_EQ(python_as_json(std::string(257, '[') + std::string(257, ']')), "");
  EXPECT_NE(python_as_json(std::string(256, '[') + std::string(256, ']')), "");
}

}  // namespace
}  // namespace foretoken
