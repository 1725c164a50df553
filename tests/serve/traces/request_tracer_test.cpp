#include "serve/traces/request_tracer.h"

#include <gtest/gtest.h>

#include <optional>

namespace foretoken {
namespace {

using otlp::AttributeValue;
using otlp::TraceSpan;

class RequestTracerTest : public testing::Test {
 protected:
  RequestTracer tracer(bool detailed = false, bool drafts = false) {
    options_.detailed = detailed;
    return {options_, "model", drafts, [this](TraceSpan span) { spans_.push_back(span); }};
  }

  void begin(RequestTracer& tracer) {
    request_.request_id = "req-1";
    tracer.add_request({request_, "cmpl-1", origin_});
  }

  static RequestOutput output(int num_tokens, bool last) {
    RequestOutput output;
    output.request_id = "req-1";
    output.token_ids.resize(static_cast<size_t>(num_tokens));
    output.finished = last;
    output.request_finished = last;
    if (last) output.finish_reason = FinishReason::kStop;
    return output;
  }

  static const AttributeValue* find(const TraceSpan& span, const std::string& wanted) {
    for (const auto& [name, value] : span.attributes) {
      if (name == wanted) return &value;
    }
    return nullptr;
  }

  TraceOptions options_;
  Request request_;
  RequestOrigin origin_;
  std::vector<TraceSpan> spans_;
};

TEST_F(RequestTracerTest, ASpanTellsWhatVllmsTells) {
  RequestTracer tracer = this->tracer();
  begin(tracer);
  tracer.add_output(output(1, false));
  EXPECT_TRUE(spans_.empty());
  RequestOutput last = output(2, true);
  last.stats.num_prompt_tokens = 7;
  last.stats.num_output_tokens = 3;
  tracer.add_output(last);
  ASSERT_EQ(spans_.size(), 1u);
  const TraceSpan& span = spans_.front();
  EXPECT_EQ(span.name, "llm_request");
  EXPECT_EQ(span.kind, TraceSpan::Kind::kServer);
  EXPECT_FALSE(span.failed);
  EXPECT_GE(span.end_ns, span.start_ns);
  EXPECT_EQ(std::get<std::string>(*find(span, "gen_ai.request.id")), "cmpl-1");
  EXPECT_EQ(std::get<std::string>(*find(span, "gen_ai.response.model")), "model");
  EXPECT_EQ(std::get<int64_t>(*find(span, "gen_ai.request.max_tokens")), 16);
  EXPECT_EQ(std::get<int64_t>(*find(span, "gen_ai.request.n")), 1);
  EXPECT_EQ(std::get<double>(*find(span, "gen_ai.request.temperature")), 1.0);
  EXPECT_EQ(std::get<double>(*find(span, "gen_ai.request.top_p")), 1.0);
  EXPECT_EQ(std::get<int64_t>(*find(span, "gen_ai.usage.prompt_tokens")), 7);
  EXPECT_EQ(std::get<int64_t>(*find(span, "gen_ai.usage.completion_tokens")), 3);
  for (const char* name : {"time_to_first_token", "e2e", "time_in_queue", "time_in_model_prefill",
                           "time_in_model_decode", "time_in_model_inference"}) {
    const AttributeValue* latency = find(span, std::string("gen_ai.latency.") + name);
    ASSERT_NE(latency, nullptr) << name;
    EXPECT_GE(std::get<double>(*latency), 0) << name;
  }
  EXPECT_EQ(find(span, "foretoken.spec_decode.num_drafts"), nullptr);
}

TEST_F(RequestTracerTest, ItBelongsToTheClientsTrace) {
  RequestTracer tracer = this->tracer();
  origin_.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  origin_.tracestate = "a=b";
  begin(tracer);
  tracer.add_output(output(1, true));
  ASSERT_EQ(spans_.size(), 1u);
  EXPECT_EQ(spans_[0].trace_id.front(), 0x0a);
  EXPECT_EQ(spans_[0].parent_id.front(), 0xb7);
  EXPECT_TRUE(spans_[0].parent_is_remote);
  EXPECT_EQ(spans_[0].state, "a=b");
}

TEST_F(RequestTracerTest, ATraceThatTheClientDoesNotKeepHasNone) {
  RequestTracer tracer = this->tracer();
  origin_.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  begin(tracer);
  tracer.add_output(output(1, true));
  EXPECT_TRUE(spans_.empty());
}

TEST_F(RequestTracerTest, DraftsOfAllChoicesAreCounted) {
  RequestTracer tracer = this->tracer(false, true);
  request_.sampling.n = 2;
  begin(tracer);
  RequestOutput one = output(1, true);
  one.request_finished = false;
  one.stats.num_drafts = 2;
  one.stats.num_draft_tokens = 6;
  one.stats.num_accepted_tokens = 4;
  one.stats.num_prompt_tokens = 5;
  tracer.add_output(one);
  one.index = 1;
  one.request_finished = true;
  tracer.add_output(one);
  ASSERT_EQ(spans_.size(), 1u);
  EXPECT_EQ(std::get<int64_t>(*find(spans_[0], "foretoken.spec_decode.num_drafts")), 4);
  EXPECT_EQ(std::get<int64_t>(*find(spans_[0], "foretoken.spec_decode.num_draft_tokens")), 12);
  EXPECT_EQ(std::get<int64_t>(*find(spans_[0], "foretoken.spec_decode.num_accepted_tokens")), 8);
  EXPECT_EQ(std::get<int64_t>(*find(spans_[0], "gen_ai.usage.prompt_tokens")), 5);
  EXPECT_EQ(std::get<int64_t>(*find(spans_[0], "gen_ai.usage.num_sequences")), 2);
}

TEST_F(RequestTracerTest, AFailureHasItsReasonAndNoTimesOfTokens) {
  RequestTracer tracer = this->tracer();
  begin(tracer);
  RequestOutput last = output(0, true);
  last.finish_reason = FinishReason::kError;
  last.status = Status(StatusCode::kInternal, "the device failed");
  tracer.add_output(last);
  ASSERT_EQ(spans_.size(), 1u);
  EXPECT_TRUE(spans_[0].failed);
  EXPECT_EQ(spans_[0].failure, "the device failed");
  EXPECT_EQ(find(spans_[0], "gen_ai.latency.time_to_first_token"), nullptr);
  EXPECT_NE(find(spans_[0], "error.type"), nullptr);
}

TEST_F(RequestTracerTest, PartsAreChildrenOfTheRequest) {
  RequestTracer tracer = this->tracer(true);
  begin(tracer);
  tracer.add_output(output(1, true));
  ASSERT_EQ(spans_.size(), 5u);
  for (size_t i = 1; i < spans_.size(); ++i) {
    EXPECT_EQ(spans_[i].parent_id, spans_[0].span_id);
    EXPECT_EQ(spans_[i].trace_id, spans_[0].trace_id);
    EXPECT_LE(spans_[i].start_ns, spans_[i].end_ns);
  }
  EXPECT_EQ(spans_[1].name, "llm_request.input");
  EXPECT_EQ(spans_[4].name, "llm_request.decode");
}

TEST_F(RequestTracerTest, WhatTheEngineRefusesAndOthersOutputsHaveNone) {
  RequestTracer tracer = this->tracer();
  tracer.add_output(output(1, true));
  begin(tracer);
  tracer.drop_request("req-1");
  tracer.add_output(output(1, true));
  EXPECT_TRUE(spans_.empty());
}

}  // namespace
}  // namespace foretoken
