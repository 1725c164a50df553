#include "http/server/cors.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

Request from(const std::string& origin, const std::string& method = "GET", Headers more = {}) {
  Request request;
  request.method = method;
  request.headers = std::move(more);
  request.headers.emplace_back("Origin", origin);
  return request;
}

std::string value(const Headers& headers, const std::string& name) {
  Request lookup;
  lookup.headers = headers;
  return std::string(lookup.header(name));
}

TEST(HttpCors, EveryoneByDefault) {
  const CorsPolicy cors({});
  EXPECT_EQ(value(cors.headers(from("https://a.example")), "Access-Control-Allow-Origin"), "*");
  EXPECT_TRUE(cors.headers(Request()).empty());  // no page asks
}

TEST(HttpCors, CredentialsNameTheOrigin) {
  CorsConfig config;
  config.allow_credentials = true;
  const Headers headers = CorsPolicy(config).headers(from("https://a.example"));
  EXPECT_EQ(value(headers, "Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(value(headers, "Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(value(headers, "Vary"), "Origin");
}

TEST(HttpCors, OnlyListedOrigins) {
  CorsConfig config;
  config.allowed_origins = {"https://a.example"};
  const CorsPolicy cors(config);
  EXPECT_EQ(value(cors.headers(from("https://a.example")), "Access-Control-Allow-Origin"),
            "https://a.example");
  EXPECT_EQ(value(cors.headers(from("https://b.example")), "Access-Control-Allow-Origin"), "");
  EXPECT_EQ(value(cors.headers(from("https://b.example")), "Vary"), "Origin");
}

TEST(HttpCors, OffWithoutOrigins) {
  CorsConfig config;
  config.allowed_origins.clear();
  const CorsPolicy cors(config);
  EXPECT_TRUE(cors.headers(from("https://a.example")).empty());
  EXPECT_FALSE(cors.preflight(
      from("https://a.example", "OPTIONS", {{"Access-Control-Request-Method", "POST"}})));
}

TEST(HttpCors, PreflightChecksOriginMethodAndHeaders) {
  CorsConfig config;
  config.allowed_origins = {"https://a.example"};
  config.allowed_methods = {"POST"};
  config.allowed_headers = {"X-One"};
  const CorsPolicy cors(config);
  const auto ask = [&](const std::string& origin, const std::string& method,
                       const std::string& headers) {
    return cors.preflight(from(
        origin, "OPTIONS",
        {{"Access-Control-Request-Method", method}, {"Access-Control-Request-Headers", headers}}));
  };
  const auto good = ask("https://a.example", "POST", "x-one, content-type");
  ASSERT_TRUE(good && good->allowed) << good->problem;
  EXPECT_EQ(value(good->headers, "Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(value(good->headers, "Access-Control-Allow-Headers"), "X-One");
  EXPECT_FALSE(ask("https://b.example", "POST", "")->allowed);
  EXPECT_FALSE(ask("https://a.example", "DELETE", "")->allowed);
  EXPECT_EQ(ask("https://a.example", "POST", "x-two")->problem, "header x-two");
}

TEST(HttpCors, PlainOptionsIsNoPreflight) {
  EXPECT_FALSE(CorsPolicy({}).preflight(from("https://a.example", "OPTIONS")));
}

}  // namespace
}  // namespace foretoken::http
