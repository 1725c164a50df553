#include "net/url.h"

#include <gtest/gtest.h>

namespace foretoken::net {
namespace {

TEST(Url, PartsAndDefaults) {
  const Url plain = parse_url("http://127.0.0.1:8000").value();
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.host, "127.0.0.1");
  EXPECT_EQ(plain.port, "8000");
  EXPECT_EQ(plain.path, "");
  const Url secure = parse_url("https://api.example.org/openai/").value();
  EXPECT_TRUE(secure.tls);
  EXPECT_EQ(secure.port, "443");
  EXPECT_EQ(secure.path, "/openai");
  EXPECT_EQ(secure.origin(), "https://api.example.org:443");
}

TEST(Url, Ipv6) {
  const Url url = parse_url("http://[::1]:9000/v").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.origin(), "http://[::1]:9000");
}

TEST(Url, WhatIsRefused) {
  for (const char* text : {"", "localhost:8000", "ftp://host/", "http://", "http://host:99999",
                           "http://user:secret@host/", "http://host/?key=1", "http://host/#part"}) {
    const Result<Url> url = parse_url(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(url.status().message().rfind("'" + std::string(text) + "'", 0), 0u)
        << url.status().message();
  }
}

}  // namespace
}  // namespace foretoken::net
