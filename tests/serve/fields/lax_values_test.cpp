#include "serve/fields/lax_values.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// What pydantic 2.14 says of each, in Python mode as FastAPI calls it.
TEST(LaxValues, IntegersAsPydanticTakesThem) {
  const std::pair<json, int64_t> taken[] = {
      {16, 16},      {"16", 16},      {" 16 ", 16}, {"+16", 16},     {"-1", -1}, {"16.0", 16},
      {"16.00", 16}, {"1_000", 1000}, {"007", 7},   {"16_0.0", 160}, {"-0", 0},  {"\n16\n", 16},
      {"0_0", 0},    {true, 1},       {false, 0},   {16.0, 16},      {"0.0", 0}, {-3, -3}};
  for (const auto& [value, wanted] : taken) EXPECT_EQ(lax_integer(value), json(wanted)) << value;
  for (const json& value : {json("16."),    json("16.5"),
                            json("1e3"),    json("1__0"),
                            json("_1"),     json("1_"),
                            json("0x10"),   json(""),
                            json(".0"),     json("\uff11\uff16"),
                            json(16.5),     json("1 6"),
                            json("1,000"),  json("true"),
                            json("16.0_0"), json("+-1"),
                            json("--1"),    json(json::array({1})),
                            json(),         json(json::object()),
                            json(1e300),    json("99999999999999999999999999")}) {
    EXPECT_FALSE(lax_integer(value)) << value;
  }
  EXPECT_EQ(lax_integer("18446744073709551615"), json(UINT64_MAX));
}

TEST(LaxValues, NumbersAsPydanticTakesThem) {
  const std::pair<json, double> taken[] = {
      {"0.7", 0.7},    {" 0.7 ", 0.7}, {"+.5", 0.5},        {".5", 0.5},     {"5.", 5},
      {"1e-3", 0.001}, {"1E3", 1e3},   {"1_000.5", 1000.5}, {"0_7", 7},      {true, 1},
      {false, 0},      {3, 3},         {"-2", -2},          {"1e1_0", 1e10}, {0.25, 0.25}};
  for (const auto& [value, wanted] : taken) EXPECT_EQ(lax_number(value), wanted) << value;
  for (const json& value :
       {json("1__0"), json("0x1p3"), json(""), json("true"), json("1,5"), json("_1"), json("1_"),
        json("+ 1"), json("abc"), json(), json(json::array()), json("1e400"), json("nan"),
        json("inf"), json("-infinity"), json("+-1"), json("1 2")}) {
    EXPECT_FALSE(lax_number(value)) << value;
  }
}

TEST(LaxValues, FlagsAsPydanticTakesThem) {
  for (const json& value : {json(true), json(1), json(1.0), json("true"), json("TRUE"), json("t"),
                            json("1"), json("y"), json("Yes"), json("oN")}) {
    EXPECT_EQ(lax_flag(value), true) << value;
  }
  for (const json& value : {json(false), json(0), json(0.0), json("false"), json("F"), json("0"),
                            json("n"), json("NO"), json("off")}) {
    EXPECT_EQ(lax_flag(value), false) << value;
  }
  for (const json& value : {json(" true "), json("2"), json(""), json(2), json(0.5), json(-1),
                            json("1.0"), json(), json(json::array()), json(json::object())}) {
    EXPECT_FALSE(lax_flag(value).has_value()) << value;
  }
}

}  // namespace
}  // namespace foretoken
