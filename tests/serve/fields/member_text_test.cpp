#include "serve/fields/member_text.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(MemberText, MissingNullAndTextAreRead) {
  const json block = {{"title", "T"}, {"context", nullptr}};
  EXPECT_EQ(optional_text(block, "title", "message 1").value(), "T");
  EXPECT_EQ(optional_text(block, "context", "message 1").value(), "");
  EXPECT_EQ(optional_text(block, "source", "message 1").value(), "");
  EXPECT_EQ(optional_text(json("bare"), "title", "message 1").value(), "");
  EXPECT_EQ(required_text(block, "title", "message 1").value(), "T");
}

TEST(MemberText, WhatIsNoTextIsNamed) {
  EXPECT_EQ(unread_part("image"), "[image: left out, as this server reads text only]");
}

TEST(MemberText, OtherValuesAreErrorsThatNameThem) {
  const json block = {{"title", json::array()}, {"text", nullptr}};
  EXPECT_EQ(optional_text(block, "title", "message 1").status().message(),
            "message 1: 'title' must be a string, not []");
  EXPECT_EQ(required_text(block, "title", "message 1").status().message(),
            "message 1: 'title' must be a string, not []");
  EXPECT_EQ(required_text(block, "text", "message 1").status().message(),
            "message 1: 'text' is missing; give a string");
  EXPECT_EQ(required_text(json(3), "text", "message 1").status().message(),
            "message 1: 'text' is missing; give a string");
}

}  // namespace
}  // namespace foretoken
