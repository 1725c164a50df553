#include "http/message/target.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

Target parsed(const std::string& target, const std::string& method = "GET") {
  auto result = parse_target(target, method);
  EXPECT_TRUE(result.ok()) << target << ": " << result.status().message();
  return result.ok() ? result.value() : Target{};
}

TEST(HttpTarget, PathAndQueryAreDecoded) {
  const Target target = parsed("/v1/%66iles/%C3%A4+b?q=a%20b+c&flag&=x&&e=%3D%26");
  EXPECT_EQ(target.path, "/v1/files/\xC3\xA4+b");
  EXPECT_EQ(target.query, (Headers{{"q", "a b c"}, {"flag", ""}, {"", "x"}, {"e", "=&"}}));
}

TEST(HttpTarget, FormsOfRfc9112) {
  EXPECT_EQ(parsed("http://host:80/a?b=c").path, "/a");
  EXPECT_EQ(parsed("HTTPS://host").path, "/");
  EXPECT_EQ(parsed("http://host?b=c").query, (Headers{{"b", "c"}}));
  EXPECT_EQ(parsed("*", "OPTIONS").path, "*");
}

TEST(HttpTarget, RefusesWhatIsNoTarget) {
  for (const char* bad : {"", "*", "hello", "host:443", "/a%", "/a%2", "/a%zz", "/%00", "/%FF",
                          "/a#b", "/?x=%ED%A0%80", "ftp://host/a"}) {
    EXPECT_FALSE(parse_target(bad, "GET").ok()) << bad;
  }
  EXPECT_FALSE(parse_target("host:443", "CONNECT").ok());
}

TEST(HttpTarget, FirstTargetOfBytesThatBeginARequest) {
  EXPECT_EQ(first_target("POST /v1/messages HTTP/1.1\r\nHost: x"), "/v1/messages");
  EXPECT_EQ(first_target("POST /v1/messages HT"), "/v1/messages");
  for (const char* none : {"", "POST", "POST /v1/mess", "POST /v1\r\nX: y z", "\r\n"}) {
    EXPECT_EQ(first_target(none), "") << none;
  }
}

TEST(HttpTarget, RootIsAWholePart) {
  EXPECT_EQ(without_root("/llm/v1/models", "/llm"), "/v1/models");
  EXPECT_EQ(without_root("/llm/v1/models", "/llm/"), "/v1/models");
  EXPECT_EQ(without_root("/llm", "/llm"), "/");
  EXPECT_EQ(without_root("/llmx/v1", "/llm"), "/llmx/v1");
  EXPECT_EQ(without_root("/v1", ""), "/v1");
  EXPECT_EQ(without_root("/v1", "/"), "/v1");
}

}  // namespace
}  // namespace foretoken::http
