#include "chat/calls/marked_calls.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Calls as <NAME>, where "!" is a flaw before and "?" one after the call has begun.
class Angled : public MarkedCalls {
 public:
  Angled() : MarkedCalls({{"<<"}, {">>"}, {"!!"}}) {}

 protected:
  void opened(int, CallSink*) override { begun_ = false; }
  void inside(char byte, CallSink* sink) override {
    if (byte == '!') return give_back(sink);
    if (byte == '?') return pass_over(sink);
    if (byte == ';') return leave();
    if (!begun_) sink->begin_call(std::string(1, byte));
    begun_ = true;
    held_.clear();
  }
  void cut(CallSink* sink) override { return begun_ ? leave() : give_back(sink); }

 private:
  bool begun_ = false;
};

std::string outcome(const std::string& text) {
  CallSink sink({});
  Angled parser;
  for (const char byte : text) parser.feed(byte, &sink);
  parser.finish(&sink);
  sink.finish();
  std::string all;
  for (const ChatPiece& piece : sink.take()) {
    all += piece.call_name.empty() ? piece.text : "[" + piece.call_name + "]";
  }
  return all;
}

TEST(MarkedCalls, TextCallsAndFlaws) {
  EXPECT_EQ(outcome("a<<f;b"), "a[f]b");
  EXPECT_EQ(outcome("a>>b"), "a>>b");
  EXPECT_EQ(outcome("a<<!b"), "a<<!b");
  EXPECT_EQ(outcome("a<<!b>>"), "a<<!b>>");
  EXPECT_EQ(outcome("<<f; >>b>>"), "[f] b>>");
  EXPECT_EQ(outcome("<<f!b>>c"), "[f]!bc");
  EXPECT_EQ(outcome("a<<f?x>>b"), "a[f]b");
  EXPECT_EQ(outcome("a<<f?x!!b"), "a[f]b");
  EXPECT_EQ(outcome("a<<f?x<<g;b"), "a[f][g]b");
  EXPECT_EQ(outcome("a<<f?x"), "a[f]?x");
  EXPECT_EQ(outcome("a<<"), "a");
  EXPECT_EQ(outcome("a<"), "a<");
}

}  // namespace
}  // namespace foretoken
