#include "otlp/span_exporter.h"

#include <gtest/gtest.h>

#include "support/fake_server.h"

namespace foretoken::otlp {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

TraceSettings to(const std::string& url) {
  TraceSettings settings;
  settings.address = url + "/v1/traces";
  settings.headers = {{"x-key", "secret"}};
  return settings;
}

TraceSpan span_named(const std::string& name) {
  TraceSpan span;
  span.name = name;
  return span;
}

TEST(SpanExporter, SendsWhatWaitsBeforeItEnds) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(200, "{}"); });
  SpanExporter exporter(to(server.url()));
  exporter.add(span_named("one"));
  exporter.add(span_named("two"));
  exporter.stop();
  EXPECT_EQ(exporter.counts().num_sent, 2);
  EXPECT_EQ(exporter.counts().num_dropped, 0);
  std::string bodies;
  for (const FakeRequest& request : server.requests()) {
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/traces");
    EXPECT_EQ(request.headers.at("content-type"), "application/x-protobuf");
    EXPECT_EQ(request.headers.at("x-key"), "secret");
    bodies += request.body;
  }
  EXPECT_NE(bodies.find("one"), std::string::npos);
  EXPECT_NE(bodies.find("two"), std::string::npos);
}

TEST(SpanExporter, GoesOnAfterACollectorThatWasAway) {
  std::atomic<int> num_asked{0};
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    reply.json(num_asked.fetch_add(1) == 0 ? 503 : 200, "{}");
  });
  TraceSettings settings = to(server.url());
  settings.delay = std::chrono::milliseconds(1);
  SpanExporter exporter(settings);
  exporter.add(span_named("one"));
  while (exporter.counts().num_sent == 0) std::this_thread::yield();
  exporter.stop();
  EXPECT_EQ(num_asked.load(), 2);
  EXPECT_EQ(exporter.counts().num_dropped, 0);
}

TEST(SpanExporter, CountsWhatNobodyTakes) {
  SpanExporter exporter(to("http://127.0.0.1:" + std::to_string(test::closed_port())));
  exporter.add(span_named("one"));
  exporter.add(span_named("two"));
  exporter.stop();
  EXPECT_EQ(exporter.counts().num_sent, 0);
  EXPECT_EQ(exporter.counts().num_dropped, 2);
  exporter.add(span_named("late"));
  EXPECT_EQ(exporter.counts().num_dropped, 3);
}

TEST(SpanExporter, ARefusalIsNotAskedAgain) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(400, "{}"); });
  SpanExporter exporter(to(server.url()));
  exporter.add(span_named("one"));
  exporter.stop();
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(exporter.counts().num_dropped, 1);
}

TEST(SpanExporter, AFullQueueDropsTheNewest) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(200, "{}"); });
  TraceSettings settings = to(server.url());
  settings.max_queued_spans = 1;
  SpanExporter exporter(settings);
  exporter.add(span_named("one"));
  exporter.add(span_named("two"));
  exporter.stop();
  EXPECT_EQ(exporter.counts().num_sent, 1);
  EXPECT_EQ(exporter.counts().num_dropped, 1);
}

}  // namespace
}  // namespace foretoken::otlp
