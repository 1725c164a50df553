#include "otlp/export_request.h"

#include <gtest/gtest.h>

namespace foretoken::otlp {
namespace {

bool holds(const std::string& bytes, const std::string& part) {
  return bytes.find(part) != std::string::npos;
}

TraceSpan one_span() {
  TraceSpan span;
  span.name = "llm_request";
  span.kind = TraceSpan::Kind::kServer;
  span.trace_id.fill(0xab);
  span.span_id.fill(0xcd);
  span.start_ns = 1;
  span.end_ns = 2;
  return span;
}

// What real collectors' readers make of it: tests/doors/traces_door.py.
TEST(ExportRequest, HoldsTheSpansOfOneProgram) {
  TraceSpan span = one_span();
  span.attributes = {{"count", int64_t{5}}, {"reasons", std::vector<std::string>{"stop"}}};
  const std::vector<TraceSpan> spans = {span, span};
  const std::string bytes = export_request({{"service.name", std::string("here")}}, spans);
  EXPECT_TRUE(holds(bytes, "\x0a\x0cservice.name\x12\x06\x0a\x04here"));
  EXPECT_TRUE(holds(bytes,
                    "\x0a\x05"
                    "count\x12\x02\x18\x05"));
  EXPECT_TRUE(holds(bytes, "\x12\x0a\x2a\x08\x0a\x06\x0a\x04stop"));
  const size_t first = bytes.find("llm_request");
  EXPECT_NE(bytes.find("llm_request", first + 1), std::string::npos);
}

TEST(ExportRequest, AFailureHasItsReason) {
  TraceSpan span = one_span();
  const std::string plain = export_request({}, {&span, 1});
  span.failed = true;
  span.failure = "why";
  const std::string failed = export_request({}, {&span, 1});
  EXPECT_FALSE(holds(plain, "\x7a\x07"));
  EXPECT_TRUE(holds(failed, "\x7a\x07\x12\x03why\x18\x02"));
}

TEST(ExportRequest, OnlyAChildNamesItsParent) {
  TraceSpan span = one_span();
  const std::string parent = "\x22\x08" + std::string(8, '\xef');
  EXPECT_FALSE(holds(export_request({}, {&span, 1}), parent));
  span.parent_id.fill(0xef);
  EXPECT_TRUE(holds(export_request({}, {&span, 1}), parent));
}

}  // namespace
}  // namespace foretoken::otlp
