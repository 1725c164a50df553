#include "serve/flow/serve_context.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::FakeExchange;
using test::json;

class ServeContextTest : public test::ServeRig {};

TEST_F(ServeContextTest, WhateverAHandlerDoesIsAnswered) {
  const auto answer = [&](BodyHandler handle) {
    auto exchange = FakeExchange::make("{}");
    on_pool(context(), openai_error, std::move(handle))(exchange);
    EXPECT_TRUE(exchange->wait());
    return exchange->status();
  };
  using Ptr = std::shared_ptr<http::Exchange>;
  EXPECT_EQ(answer([](ServeContext&, const Ptr&, Body) -> Status {
              throw std::runtime_error("planned");
            }),
            500);
  EXPECT_EQ(answer([](ServeContext&, const Ptr&, Body) -> Status { throw std::bad_alloc(); }), 503);
  EXPECT_EQ(answer([](ServeContext&, const Ptr&, Body) { return unsupported("no"); }), 501);
}

TEST_F(ServeContextTest, IdsAreThoseOfTheClientsAsFarAsTheyArePlain) {
  auto exchange = FakeExchange::make("{}");
  EXPECT_EQ(answer_id("cmpl-", "", *exchange), "cmpl-test-id");
  EXPECT_EQ(answer_id("cmpl-", "a b\"\n\xff.c_1", *exchange), "cmpl-ab.c_1");
  EXPECT_EQ(answer_id("cmpl-", std::string(1000, 'x'), *exchange).size(), 5u + 128);
  exchange->request_.id.clear();
  EXPECT_EQ(answer_id("cmpl-", "", *exchange).size(), 5u + 32);
}

TEST_F(ServeContextTest, PreparedPromptsAreTokensThatTheGateCounts) {
  OpenAiRequest request =
      parse_openai_request(OpenAiKind::kCompletion,
                           {{"prompt", {"Once upon", "a"}}, {"echo", true}, {"n", 2}},
                           context().defaults)
          .value();
  auto prepared = prepare_text(context(), &request);
  ASSERT_TRUE(prepared.ok());
  EXPECT_FALSE(request.requests[0].prompt_token_ids.empty());
  EXPECT_EQ(prepared.value().prompts, (PromptTexts{"Once upon", "a"}));
  EXPECT_EQ(context().gate.num_requests(), 1);
}

TEST_F(ServeContextTest, LabelsNameTheModelAsAsked) {
  OpenAiRequest request;
  request.requests.resize(1);
  EXPECT_EQ(make_label(context(), "id", request).model, "tiny");
  EXPECT_EQ(make_label(context(), "id", request).num_spec_tokens, 0);
  request.model = "other";
  EXPECT_EQ(make_label(context(), "id", request).model, "other");
  ServeConfig config = base_config();
  config.speculation_metrics = true;
  start(std::move(config));
  EXPECT_EQ(make_label(context(), "id", request).num_spec_tokens, 3);
}

}  // namespace
}  // namespace foretoken
