#include "chat/calls/call_object.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

CallObject::Outcome feed_all(CallObject& object, const std::string& text) {
  CallObject::Outcome last = CallObject::Outcome::kHeld;
  for (const char byte : text) {
    last = object.feed(byte);
    if (last == CallObject::Outcome::kFlaw) return last;
  }
  return last;
}

TEST(CallObject, BeginsWithTheBraceOfTheArguments) {
  CallSink sink({});
  CallObject object({}, &sink);
  EXPECT_EQ(feed_all(object, R"({"name": "f", "arguments": )"), CallObject::Outcome::kHeld);
  EXPECT_FALSE(object.begun());
  EXPECT_EQ(object.feed('{'), CallObject::Outcome::kSent);
  EXPECT_TRUE(object.begun());
  EXPECT_EQ(feed_all(object, "}}"), CallObject::Outcome::kEnd);
}

TEST(CallObject, Rules) {
  CallSink::Options options;
  options.names = {"f"};
  CallSink sink(options);
  const auto outcome = [&](bool needs_arguments, bool needs_known_name, const std::string& text) {
    CallObject object({needs_arguments, needs_known_name}, &sink);
    return feed_all(object, text);
  };
  EXPECT_EQ(outcome(false, false, R"({"name": "g"})"), CallObject::Outcome::kEnd);
  EXPECT_EQ(outcome(true, false, R"({"name": "g"})"), CallObject::Outcome::kFlaw);
  EXPECT_EQ(outcome(false, true, R"({"name": "g"})"), CallObject::Outcome::kFlaw);
  EXPECT_EQ(outcome(true, true, R"({"name": "f", "parameters": {}})"), CallObject::Outcome::kEnd);
  EXPECT_EQ(outcome(false, false, R"({"name": "f", "parameters": 5})"), CallObject::Outcome::kFlaw);
  EXPECT_EQ(outcome(false, false, R"({"name": "f", "parameters": 5, "a": 1})"),
            CallObject::Outcome::kFlaw);
}

}  // namespace
}  // namespace foretoken
