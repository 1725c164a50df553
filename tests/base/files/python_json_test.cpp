#include "base/files/python_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

TEST(PythonJson, ReadsTheNumbersThatJsonHasNoWordsFor) {
  const auto json = parse_python_json_object(
      R"({"a": NaN, "b": [0.5, Infinity], "c": {"d": -Infinity}, "e": "Infinity \" NaN", "f": 1})",
      "x.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_TRUE(std::isnan(json.value()["a"].get<double>()));
  EXPECT_EQ(json.value()["b"][1].get<double>(), INFINITY);
  EXPECT_EQ(json.value()["c"]["d"].get<double>(), -INFINITY);
  EXPECT_EQ(json.value()["e"], "Infinity \" NaN");
  EXPECT_EQ(json.value()["f"], 1);
}

TEST(PythonJson, KeepsTheOrderWhereThatIsAsked) {
  const auto json = parse_ordered_python_json_object(R"({"b": NaN, "a": [Infinity]})", "x.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json.value().begin().key(), "b");
  EXPECT_TRUE(std::isnan(json.value()["b"].get<double>()));
  EXPECT_EQ(json.value()["a"][0].get<double>(), INFINITY);
}

TEST(PythonJson, ReadsTheObjectsThatTransformersWritesForThem) {
  const auto json = parse_python_json_object(
      R"({"a": [0.0, {"__float__": "Infinity"}], "b": {"c": {"__float__": "-Infinity"}},)"
      R"( "d": {"__float__": "NaN"}, "e": -Infinity})",
      "x.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json.value()["a"][1], INFINITY);
  EXPECT_EQ(json.value()["b"]["c"], -INFINITY);
  EXPECT_TRUE(json.value()["d"].is_number_float());
  EXPECT_TRUE(std::isnan(json.value()["d"].get<double>()));
  EXPECT_EQ(json.value()["e"], -INFINITY);
  const auto ordered =
      parse_ordered_python_json_object(R"({"b": {"__float__": "Infinity"}, "a": 1})", "x.json");
  ASSERT_TRUE(ordered.ok()) << ordered.status().message();
  EXPECT_EQ(ordered.value().dump(), R"({"b":null,"a":1})");
  EXPECT_EQ(ordered.value()["b"], INFINITY);
}

TEST(PythonJson, OtherObjectsAreNoNumbers) {
  for (const char* text :
       {R"({"a":{"__float__":"1.0"}})", R"({"a":{"__float__":1}})", R"({"__float__":"NaN"})",
        R"({"a":{"__float__":"NaN","b":1}})", R"({"a":["__float__","NaN"]})"}) {
    const auto json = parse_python_json_object(text, "x.json");
    ASSERT_TRUE(json.ok()) << json.status().message();
    EXPECT_EQ(json.value().dump(), text);
  }
}

TEST(PythonJson, OtherWordsStayErrors) {
  for (const char* text : {R"({"a": nan})", R"({"a": Inf})", R"({NaN: 1})", R"([NaN])", "NaN",
                           R"({"a": InfinityNaN})", R"({"a": "NaN})"}) {
    const auto json = parse_python_json_object(text, "x.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_TRUE(json.status().message().starts_with("x.json")) << json.status().message();
  }
}

TEST(PythonJson, MessagesHaveTheWords) {
  EXPECT_EQ(python_json_text(INFINITY), "Infinity");
  EXPECT_EQ(python_json_text(-INFINITY), "-Infinity");
  EXPECT_EQ(python_json_text(NAN), "NaN");
  EXPECT_EQ(python_json_text(0.5), "0.5");
  EXPECT_EQ(python_json_text("x"), "\"x\"");
}

}  // namespace
}  // namespace foretoken
