#include "base/files/yaml_flow.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

std::string read(const std::string& text) {
  const auto value = parse_yaml_flow(text);
  return value ? value->dump() : "none";
}

TEST(YamlFlow, NamesAndTextsNeedNoQuotes) {
  EXPECT_EQ(read("{method: ngram, num_speculative_tokens: 4, on: True, off: false}"),
            R"({"method":"ngram","num_speculative_tokens":4,"on":true,"off":false})");
  EXPECT_EQ(read("{'a': 'b, c', \"d\": \"e\\n\", f: [1, x y, {g: 0.5}], h: ~}"),
            R"({"a":"b, c","d":"e\n","f":[1,"x y",{"g":0.5}],"h":null})");
  EXPECT_EQ(read("{\"method\":\"mtp\",\"n\":[]}"), R"({"method":"mtp","n":[]})");
  EXPECT_EQ(read("{ model: https://x/y }"), R"({"model":"https://x/y"})");
  EXPECT_EQ(read("[a, 'b',]"), R"(["a","b"])");
}

TEST(YamlFlow, WhatIsNone) {
  for (const char* text :
       {"{a: 1", "[1, 2", "{a}", "{a: 1} b", "{a: \"b}", "{a: 1, a: 2}", "", "{: 1}"}) {
    EXPECT_EQ(read(text), "none") << text;
  }
  EXPECT_EQ(read(std::string(100, '[') + std::string(100, ']')), "none");
}

TEST(YamlFlow, OpenBrackets) {
  EXPECT_EQ(open_brackets("{a: [1,"), 2);
  EXPECT_EQ(open_brackets("{a: '[', b: \"}\\\"\"}"), 0);
  EXPECT_EQ(open_brackets("plain"), 0);
}

}  // namespace
}  // namespace foretoken
