#include "otlp/trace_settings.h"

#include <gtest/gtest.h>

#include <map>

namespace foretoken::otlp {
namespace {

using Variables = std::map<std::string, std::string>;

Result<std::optional<TraceSettings>> read(const std::string& endpoint,
                                          const Variables& variables = {}) {
  return read_trace_settings(endpoint, [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TraceSettings settings(const std::string& endpoint, const Variables& variables = {}) {
  return read(endpoint, variables).value().value();
}

std::string resource(const TraceSettings& of, const std::string& wanted) {
  for (const auto& [name, value] : of.resource) {
    if (name == wanted) return std::get<std::string>(value);
  }
  return "";
}

TEST(TraceSettings, WithoutACollectorThereAreNone) {
  EXPECT_FALSE(read("").value().has_value());
  EXPECT_FALSE(read("http://here:4318", {{"OTEL_SDK_DISABLED", "true"}}).value().has_value());
}

TEST(TraceSettings, AnAddressIsTakenAsItIsOrGetsTheUsualPath) {
  EXPECT_EQ(settings("http://here:4318/v1/traces").address, "http://here:4318/v1/traces");
  EXPECT_EQ(settings("http://here:4318").address, "http://here:4318/v1/traces");
  EXPECT_EQ(settings("https://here/otlp/v1/traces").address, "https://here:443/otlp/v1/traces");
  EXPECT_EQ(settings("", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://there:1"}}).address,
            "http://there:1/v1/traces");
}

TEST(TraceSettings, GrpcIsRefusedWithThePortToUse) {
  const Variables grpc = {{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}};
  for (const char* text : {"grpc://localhost:4317", "localhost:4317", "http://localhost:4317"}) {
    const Status status = read(text).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << text;
    EXPECT_NE(status.message().find("http://localhost:4318/v1/traces"), std::string::npos);
  }
  EXPECT_EQ(read("http://localhost:4318", grpc).status().code(), StatusCode::kUnsupported);
  const Variables http = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}};
  EXPECT_TRUE(read("http://localhost:4317", http).ok());
  EXPECT_EQ(read("http://here", {{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}}).status().message(),
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not spoken here; use http/protobuf, which "
            "every collector takes");
}

TEST(TraceSettings, VariablesOfTracesComeBeforeThoseOfAllSignals) {
  const TraceSettings both =
      settings("http://here:4318", {{"OTEL_EXPORTER_OTLP_HEADERS", "a=all"},
                                    {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=b%20c, d = e"},
                                    {"OTEL_EXPORTER_OTLP_TIMEOUT", "500"}});
  const net::Headers wanted = {{"a", "b c"}, {"d", "e"}};
  EXPECT_EQ(both.headers, wanted);
  EXPECT_EQ(both.timeout, std::chrono::milliseconds(500));
}

TEST(TraceSettings, TheProgramIsDescribedAsTheVariablesSay) {
  EXPECT_EQ(resource(settings("http://here:4318"), "service.name"), "foretoken");
  const TraceSettings named = settings(
      "http://here:4318",
      {{"OTEL_SERVICE_NAME", "one"}, {"OTEL_RESOURCE_ATTRIBUTES", "service.name=two,place=a%2Cb"}});
  EXPECT_EQ(resource(named, "service.name"), "one");
  EXPECT_EQ(resource(named, "place"), "a,b");
}

TEST(TraceSettings, NumbersAreBounded) {
  const TraceSettings large = settings(
      "http://here:4318",
      {{"OTEL_BSP_SCHEDULE_DELAY", "9223372036854775807"}, {"OTEL_BSP_MAX_QUEUE_SIZE", "100"}});
  EXPECT_EQ(large.delay, std::chrono::milliseconds(2'147'483'647));
  EXPECT_EQ(large.max_batch_spans, 100u);
}

TEST(TraceSettings, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(read("http://here", {{"OTEL_BSP_SCHEDULE_DELAY", "soon"}}).status().message(),
            "OTEL_BSP_SCHEDULE_DELAY=soon is no whole number above 0; correct or unset it");
  EXPECT_EQ(read("http://here", {{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "key"}}).status().message(),
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS has 'key' where NAME=VALUE belongs; separate pairs "
            "by commas");
  EXPECT_FALSE(read("http://here", {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac"}}).ok());
}

}  // namespace
}  // namespace foretoken::otlp
