#include "otlp/trace_context.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken::otlp {
namespace {

const std::string kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, IsReadFromTheHeaders) {
  const auto context = parse_trace_context(kParent, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id.front(), 0x0a);
  EXPECT_EQ(context->trace_id.back(), 0x9c);
  EXPECT_EQ(context->span_id.front(), 0xb7);
  EXPECT_EQ(context->span_id.back(), 0x31);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->state, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
}

TEST(TraceContext, TheLastBitOfTheFlagsSaysWhetherTheClientKeepsTheTrace) {
  std::string parent = kParent;
  parent.back() = '2';
  EXPECT_FALSE(parse_trace_context(parent, "")->sampled);
  parent.back() = '3';
  EXPECT_TRUE(parse_trace_context(parent, "")->sampled);
}

TEST(TraceContext, ALaterVersionMayHaveMoreBehindIt) {
  std::string later = kParent;
  later[1] = '1';
  EXPECT_TRUE(parse_trace_context(later + "-what-comes", "").has_value());
  EXPECT_FALSE(parse_trace_context(later + "what", "").has_value());
  EXPECT_FALSE(parse_trace_context(kParent + "-what-comes", "").has_value());
}

TEST(TraceContext, WhatIsNotOfTheFormIsNone) {
  for (const char* text : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g"}) {
    EXPECT_FALSE(parse_trace_context(text, "a=b").has_value()) << text;
  }
}

TEST(TraceContext, AStateOfOtherBytesIsLeftOut) {
  EXPECT_EQ(parse_trace_context(kParent, "a=\xff")->state, "");
}

TEST(TraceContext, RandomIdsDiffer) {
  std::set<SpanId> spans;
  std::set<TraceId> traces;
  for (int i = 0; i < 100; ++i) {
    spans.insert(random_span_id());
    traces.insert(random_trace_id());
  }
  EXPECT_EQ(spans.size(), 100u);
  EXPECT_EQ(traces.size(), 100u);
}

}  // namespace
}  // namespace foretoken::otlp
