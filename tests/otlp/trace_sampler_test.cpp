#include "otlp/trace_sampler.h"

#include <gtest/gtest.h>

namespace foretoken::otlp {
namespace {

TraceContext client(bool sampled) {
  TraceContext context;
  context.sampled = sampled;
  return context;
}

TEST(TraceSampler, FollowsTheClientUnlessItIsToldOtherwise) {
  const TraceContext wants = client(true);
  const TraceContext declines = client(false);
  const TraceId id{};
  for (const char* name : {"", "parentbased_always_on"}) {
    const TraceSampler sampler = parse_trace_sampler(name, "").value();
    EXPECT_TRUE(sampler.samples(nullptr, id)) << name;
    EXPECT_TRUE(sampler.samples(&wants, id)) << name;
    EXPECT_FALSE(sampler.samples(&declines, id)) << name;
  }
  EXPECT_TRUE(parse_trace_sampler("always_on", "").value().samples(&declines, id));
  EXPECT_FALSE(parse_trace_sampler("always_off", "").value().samples(&wants, id));
  const TraceSampler only_clients = parse_trace_sampler("parentbased_always_off", "").value();
  EXPECT_TRUE(only_clients.samples(&wants, id));
  EXPECT_FALSE(only_clients.samples(nullptr, id));
}

TEST(TraceSampler, AShareGoesByTheLastEightBytesOfTheId) {
  const TraceSampler half = parse_trace_sampler("traceidratio", "0.5").value();
  TraceId low{};
  low[0] = 0xff;
  low[8] = 0x7f;
  TraceId high{};
  high[8] = 0x80;
  EXPECT_TRUE(half.samples(nullptr, low));
  EXPECT_FALSE(half.samples(nullptr, high));
  EXPECT_FALSE(parse_trace_sampler("traceidratio", "0").value().samples(nullptr, TraceId{}));
  EXPECT_TRUE(parse_trace_sampler("traceidratio", "").value().samples(nullptr, high));
}

TEST(TraceSampler, OtherNamesAndSharesAreErrors) {
  EXPECT_EQ(parse_trace_sampler("sometimes", "").status().message(),
            "OTEL_TRACES_SAMPLER=sometimes is unknown; use always_on, always_off, traceidratio, or "
            "one of them behind parentbased_");
  EXPECT_EQ(parse_trace_sampler("traceidratio", "2").status().message(),
            "OTEL_TRACES_SAMPLER_ARG=2 is no share of traces from 0 to 1; correct or unset it");
}

}  // namespace
}  // namespace foretoken::otlp
