#include "serve/fields/request_warnings.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(RequestWarnings, EachSentenceOnceAndNotTooMany) {
  std::vector<std::string> warnings;
  add_warning("a", &warnings);
  add_warning("b", &warnings);
  add_warning("a", &warnings);
  EXPECT_EQ(warnings, (std::vector<std::string>{"a", "b"}));
  std::vector<std::string> more;
  for (int i = 0; i < 1000; ++i) more.push_back(std::to_string(i));
  add_warnings(more, &warnings);
  EXPECT_EQ(warnings.size(), 64u);
  EXPECT_EQ(shown_name(std::string(1000, 'x')), std::string(64, 'x') + "...");
}

TEST(RequestWarnings, AnswersHaveThemWhereThereAreAny) {
  json answer = {{"id", 1}};
  put_warnings({}, &answer);
  EXPECT_FALSE(answer.contains("warnings"));
  put_warnings({"a"}, &answer);
  EXPECT_EQ(answer["warnings"], json({"a"}));
}

// Names of fields are the client's: they must not end the header or begin another.
TEST(RequestWarnings, TheHeaderIsAsciiAndBounded) {
  EXPECT_TRUE(warning_headers({}).empty());
  const http::Headers headers = warning_headers({"'a\r\nSet-Cookie: b'", "'\xc3\xa4'"});
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].first, "X-Foretoken-Warnings");
  EXPECT_EQ(headers[0].second, "'a?\?Set-Cookie: b' | '?\?'");
  const std::string longest =
      warning_headers(std::vector<std::string>(64, std::string(100, 'x')))[0].second;
  EXPECT_EQ(longest.size(), 2000u);
  EXPECT_TRUE(longest.ends_with("x..."));
}

class WarningLogTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  WarningLog log_{[this](const std::string& line) { lines_.push_back(line); }};
  WarningLog::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(WarningLogTest, OneLineHoweverOftenItComes) {
  for (int i = 0; i < 100000; ++i) log_.tell({"a\nb"}, now_);
  EXPECT_EQ(lines_, std::vector<std::string>{"a?b"});
}

TEST_F(WarningLogTest, NamesThatAClientMakesUpDoNotFillIt) {
  for (int i = 0; i < 1000; ++i) log_.tell({std::to_string(i)}, now_);
  EXPECT_EQ(lines_.size(), 32u);
  // What was not told then is told when it comes again.
  now_ += std::chrono::minutes(1);
  log_.tell({"999"}, now_);
  EXPECT_EQ(lines_.back(), "999");
  for (int i = 0; i < 100000; ++i) {
    now_ += std::chrono::seconds(10);
    log_.tell({std::to_string(i)}, now_);
  }
  EXPECT_EQ(lines_.size(), 256u);
}

}  // namespace
}  // namespace foretoken
