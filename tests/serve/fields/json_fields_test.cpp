#include "serve/fields/json_fields.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(JsonFields, ReadsWhatIsThereAndLeavesTheRest) {
  const json object = {{"a", 3}, {"b", nullptr}, {"c", "text"}, {"d", {1, 2}}, {"e", true}};
  JsonFields fields(object, "what");
  int a = 0;
  int b = 7;
  std::optional<int> missing;
  std::optional<bool> e;
  std::vector<std::string> c;
  std::vector<int32_t> d;
  fields.read("a", &a);
  fields.read("b", &b);
  fields.read("c", &c);
  fields.read("d", &d);
  fields.read("e", &e);
  fields.read("missing", &missing);
  fields.refuse_unread();
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 7);
  EXPECT_EQ(c, std::vector<std::string>{"text"});
  EXPECT_EQ(d, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(e, true);
  EXPECT_FALSE(missing.has_value());
}

TEST(JsonFields, NumbersKeepTheirDigits) {
  const json object = {{"rate", 0.1}, {"rates", {1, 0.25}}, {"bad", {0.5, "x"}}};
  JsonFields fields(object, "");
  double rate = 0;
  std::vector<double> rates;
  fields.read("rate", &rate);
  fields.read("rates", &rates);
  EXPECT_EQ(rate, 0.1);
  EXPECT_EQ(rates, (std::vector<double>{1, 0.25}));
  fields.read("bad", &rates);
  EXPECT_EQ(fields.status().message(), "'bad' must be an array of numbers, not \"x\"");
}

// As for JSON Schema and for vLLM.
TEST(JsonFields, WholeNumbersAreIntegers) {
  const json object = {{"a", 3.0}, {"ids", {1.0, 2}}, {"seed", 4.0}, {"b", 3.5}, {"c", -0.25}};
  JsonFields fields(object, "");
  int a = 0;
  uint64_t seed = 0;
  std::vector<int32_t> ids;
  fields.read("a", &a);
  fields.read("ids", &ids);
  fields.read("seed", &seed);
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(a, 3);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(seed, 4u);
  for (const char* name : {"b", "c"}) {
    JsonFields others(object, "");
    others.read(name, &a);
    EXPECT_FALSE(others.status().ok()) << name;
  }
}

TEST(JsonFields, NumbersAndFlagsMayBeText) {
  const json object = {
      {"max_tokens", "16"}, {"temperature", "0.7"},    {"seed", "4"},      {"stream", "false"},
      {"flag", 1},          {"ids", {"1", 2.0, true}}, {"rates", {"0.5"}}, {"big", "3000000000"}};
  JsonFields fields(object, "");
  int max_tokens = 0;
  float temperature = 0;
  uint64_t seed = 0;
  bool stream = true;
  bool flag = false;
  std::vector<int32_t> ids;
  std::vector<double> rates;
  fields.read("max_tokens", &max_tokens);
  fields.read("temperature", &temperature);
  fields.read("seed", &seed);
  fields.read("stream", &stream);
  fields.read("flag", &flag);
  fields.read("ids", &ids);
  fields.read("rates", &rates);
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(max_tokens, 16);
  EXPECT_FLOAT_EQ(temperature, 0.7F);
  EXPECT_EQ(seed, 4u);
  EXPECT_FALSE(stream);
  EXPECT_TRUE(flag);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(rates, std::vector<double>{0.5});
  fields.read("big", &max_tokens);
  EXPECT_EQ(max_tokens, INT32_MAX);
}

// "No limit" of clients whose largest integer is another; ids of tokens stay what they are.
TEST(JsonFields, IntegersBeyond32BitsAreTheNearest) {
  const json object = {
      {"js", 9007199254740991}, {"c", UINT64_MAX}, {"low", INT64_MIN}, {"ids", {1, 4294967296}}};
  JsonFields fields(object, "");
  int js = 0;
  int c = 0;
  int low = 0;
  fields.read("js", &js);
  fields.read("c", &c);
  fields.read("low", &low);
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(js, INT32_MAX);
  EXPECT_EQ(c, INT32_MAX);
  EXPECT_EQ(low, INT32_MIN);
  std::vector<int32_t> ids;
  fields.read("ids", &ids);
  EXPECT_EQ(fields.status().message(), "'ids' must be an array of whole numbers, not 4294967296");
}

TEST(JsonFields, WhatIsAboveZeroStaysSo) {
  const json object = {{"tiny", 5e-324}, {"zero", 0.0}};
  JsonFields fields(object, "");
  float tiny = 0;
  float zero = 1;
  fields.read("tiny", &tiny);
  fields.read("zero", &zero);
  EXPECT_GT(tiny, 0);
  EXPECT_EQ(zero, 0);
}

TEST(JsonFields, AFieldWithoutANameIsUnknown) {
  const json object = {{"", 1}};
  JsonFields fields(object, "");
  fields.refuse_unread();
  EXPECT_EQ(fields.status().message(), "'' is unknown; remove it");
}

TEST(JsonFields, WrongTypesNameTheFieldAndKeepTheValue) {
  const json object = {{"a", "three"}, {"big", 1e40}, {"ids", {1, "x"}}};
  JsonFields fields(object, "line 2");
  int a = 5;
  fields.read("a", &a);
  EXPECT_EQ(a, 5);
  EXPECT_EQ(fields.status().message(), "line 2: 'a' must be an integer, not \"three\"");
}

TEST(JsonFields, UnknownFieldsComeWithTheNearestKnownName) {
  const json object = {{"temprature", 1}};
  JsonFields fields(object, "");
  float temperature = 0;
  fields.read("temperature", &temperature);
  fields.refuse_unread();
  EXPECT_EQ(fields.status().message(), "'temprature' is unknown; did you mean 'temperature'?");
}

TEST(JsonFields, RefusedFieldsSayWhatToDoUnlessTheyAskForNothing) {
  const json quiet = {{"best_of", nullptr}, {"beam", false}, {"suffix", ""}};
  JsonFields none(quiet, "");
  none.refuse({{"best_of", "x"}, {"beam", "y"}, {"suffix", "z"}});
  none.refuse_unread();
  EXPECT_TRUE(none.status().ok());
  const json loud = {{"best_of", 3}};
  JsonFields one(loud, "");
  one.refuse({{"best_of", "give 'n'"}});
  EXPECT_EQ(one.status().message(), "'best_of' is not supported; give 'n'");
}

TEST(JsonFields, UnknownFieldsAreWarningsWhereSomebodyTakesThem) {
  const json object = {{"temprature", 1}, {"zebra", 2}, {"nothing", nullptr}, {"temperature", 1}};
  std::vector<std::string> warnings;
  JsonFields fields(object, "what", {&warnings});
  float temperature = 0;
  fields.read("temperature", &temperature);
  fields.check_unread();
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"what: 'temprature' is unknown; did you mean 'temperature'?",
                                      "what: 'zebra' is unknown and was passed over"}));
  JsonFields strict(object, "what");
  strict.read("temperature", &temperature);
  strict.check_unread();
  EXPECT_EQ(strict.status().message(),
            "what: 'temprature' is unknown; did you mean 'temperature'?");
}

TEST(JsonFields, WhatHasNoEffectIsAWarningUnlessItAsksForNothing) {
  const json object = {{"audio", {{"voice", "a"}}}, {"beam", false}, {"empty", json::object()}};
  std::vector<std::string> warnings;
  JsonFields fields(object, "", {&warnings});
  fields.pass_over({"audio", "beam", "empty"});
  fields.check_unread();
  EXPECT_EQ(warnings, std::vector<std::string>{"'audio' has no effect here and was passed over"});
  JsonFields strict(object, "");
  strict.pass_over({"audio", "beam", "empty"});
  EXPECT_EQ(strict.status().message(), "'audio' has no effect here and was passed over");
}

TEST(JsonFields, StandInsAreReadInstead) {
  const json object = {{"a", 1}, {"b", 2}};
  JsonFields fields(object, "");
  fields.stand_in({{"a", nullptr}, {"c", 3}});
  int a = 7;
  int c = 0;
  fields.read("a", &a);
  fields.read("c", &c);
  EXPECT_FALSE(fields.has("a"));
  EXPECT_EQ(a, 7);
  EXPECT_EQ(c, 3);
  EXPECT_EQ(fields.first_unread(), "b");
}

TEST(JsonFields, ParsingNamesWhatIsWrong) {
  EXPECT_NE(
      parse_ordered_json_object("[1]", "x").status().message().find("x: must be a JSON object"),
      std::string::npos);
  EXPECT_NE(parse_ordered_json("{", "x").status().message().find("x: not valid JSON"),
            std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(parse_ordered_json(deep, "x").status().message().find("deeper"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
