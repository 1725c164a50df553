#include "serve/flow/generation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class GenerationTest : public test::ServeRig {
 protected:
  static json completion(const char* prompt, int max_tokens) {
    return {
        {"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}, {"ignore_eos", true}};
  }
  static std::string text_of(const std::vector<json>& events) {
    std::string text;
    for (const json& event : events) {
      for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
    }
    return text;
  }
};

TEST(RequestOrigin, NamesAnEngineByItsHeaderOrItsPort) {
  http::Request request;
  EXPECT_EQ(origin_of(request).engine, std::nullopt);
  request.port_number = 1;
  EXPECT_EQ(origin_of(request).engine, 1);
  request.headers = {{"x-data-parallel-rank", "2"}};
  EXPECT_EQ(origin_of(request).engine, 2);
  request.headers = {{"X-Data-Parallel-Rank", "two"}};
  EXPECT_EQ(origin_of(request).engine, 1);
}

TEST_F(GenerationTest, AStreamSaysWhatAWholeAnswerSays) {
  json body = completion("Once upon a time", 40);
  const json whole = post("/v1/completions", body);
  body["stream"] = true;
  const auto exchange = send("POST", "/v1/completions", body.dump());
  const std::string stream = exchange->body();
  EXPECT_EQ(text_of(events(stream)), whole["choices"][0]["text"].get<std::string>());
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(events(stream).back()["choices"][0]["finish_reason"], "length");
}

TEST_F(GenerationTest, SeveralPromptsAndChoicesAreKeptApart) {
  json body = {{"prompt", {"Once upon", "The cat"}},
               {"max_tokens", 12},
               {"n", 2},
               {"seed", 5},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  const auto exchange = send("POST", "/v1/completions", body.dump());
  std::vector<std::string> texts(4);
  int64_t completion_tokens = 0;
  for (const json& event : events(exchange->body())) {
    if (event.contains("usage")) completion_tokens = event["usage"]["completion_tokens"];
    for (const json& choice : event["choices"]) {
      texts.at(choice["index"].get<size_t>()) += choice["text"].get<std::string>();
    }
  }
  body.erase("stream");
  body.erase("stream_options");
  const json whole = post("/v1/completions", body);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(texts[i], whole["choices"][i]["text"].get<std::string>()) << i;
  EXPECT_EQ(completion_tokens, whole["usage"]["completion_tokens"]);
}

TEST_F(GenerationTest, AnIntervalGathersTokens) {
  json body = completion("Once upon a time", 40);
  body["stream"] = true;
  body["stream_interval"] = 16;
  body["speculative"] = {{"enabled", false}};
  const auto exchange = send("POST", "/v1/completions", body.dump());
  EXPECT_LE(events(exchange->body()).size(), 4u);
  EXPECT_GE(events(exchange->body()).size(), 2u);
}

TEST_F(GenerationTest, ASlowReaderHasLargerEventsLater) {
  json body = completion("Once upon a time", 450);
  body["stream"] = true;
  body["return_token_ids"] = true;
  body["logprobs"] = 5;
  body["n"] = 1;
  steps().close();
  auto exchange = begin("POST", "/v1/completions", body.dump());
  exchange->stall();
  // What a step gave is written before the next one ends, until 64 KiB are unsent.
  size_t num_written = 0;
  for (; num_written <= 64 * 1024; num_written = exchange->body().size()) {
    steps().let(1);
    ASSERT_TRUE(exchange->wait_for_bytes(num_written + 1));
  }
  // The engine goes on, but nothing more is written.
  steps().open();
  wait_for_engine();
  EXPECT_EQ(exchange->body().size(), num_written);
  const size_t num_writes = exchange->num_writes();
  exchange->resume();
  ASSERT_TRUE(exchange->wait());
  EXPECT_GT(exchange->body().size(), num_written);
  EXPECT_LE(exchange->num_writes(), num_writes + 3);
  size_t num_ids = 0;
  for (const json& event : events(exchange->body())) {
    num_ids += event["choices"][0]["token_ids"].size();
  }
  EXPECT_EQ(num_ids, 450u);
}

TEST_F(GenerationTest, WhenTheClientGoesTheEngineStops) {
  json body = completion("Once upon a time", 480);
  body["n"] = 4;
  body["temperature"] = 1;
  for (const bool stream : {true, false}) {
    body["stream"] = stream;
    if (!stream) steps().close();
    auto exchange = begin("POST", "/v1/completions", body.dump());
    if (stream) {
      ASSERT_TRUE(exchange->wait_for_bytes(1));
    } else {
      ASSERT_TRUE(test::eventually([] {
        const EngineStats stats = engine().stats();
        return stats.num_running_requests + stats.num_waiting_requests > 0;
      }));
    }
    exchange->leave();
    steps().open();
    ASSERT_TRUE(wait_idle());
    wait_for_engine();
  }
}

TEST_F(GenerationTest, AbortedTextsEndWithWhatTheyHave) {
  json body = completion("Once upon a time", 480);
  body["stream"] = true;
  body["request_id"] = "mine";
  steps().close();
  auto exchange = begin("POST", "/v1/completions", body.dump());
  steps().let(1);
  ASSERT_TRUE(exchange->wait_for_bytes(1));
  EXPECT_EQ(post("/abort_requests", {{"request_ids", {"cmpl-mine", "cmpl-other"}}})["aborted"], 1);
  steps().open();
  ASSERT_TRUE(exchange->wait());
  EXPECT_EQ(events(exchange->body()).back()["choices"][0]["finish_reason"], "abort");
}

TEST_F(GenerationTest, ErrorsBeforeAndWithinAStream) {
  json body = completion("Once upon a time", 480);
  body["stream"] = true;
  body["logprobs"] = 1000;  // more than the engine allows
  const auto refused = send("POST", "/v1/completions", body.dump());
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(json::parse(refused->body())["error"]["code"], 400);
  body["logprobs"] = 5;
  body["timeout_seconds"] = 0.05;
  steps().close();
  const auto late = begin("POST", "/v1/completions", body.dump());
  steps().let(1);
  ASSERT_TRUE(late->wait_for_bytes(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  steps().open();
  ASSERT_TRUE(late->wait());
  if (late->status() == 200) {
    const json last = events(late->body()).back();
    EXPECT_EQ(last["error"]["type"], "TimeoutError") << last.dump();
    EXPECT_TRUE(late->body().ends_with("data: [DONE]\n\n"));
  } else {
    EXPECT_EQ(late->status(), 504);
  }
}

// Also of an event that was not due yet.
TEST_F(GenerationTest, WhatCameBeforeAnErrorIsTold) {
  json body = completion("Once upon a time", 480);
  body["stream"] = true;
  body["stream_interval"] = 100;
  body["return_token_ids"] = true;
  body["timeout_seconds"] = 0.2;
  body["speculative"] = {{"enabled", false}};
  steps().close();
  const auto late = begin("POST", "/v1/completions", body.dump());
  steps().let(1);
  ASSERT_TRUE(late->wait_for_bytes(1));
  steps().let(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(220));
  steps().open();
  ASSERT_TRUE(late->wait());
  const std::vector<json> told = events(late->body());
  ASSERT_EQ(told.size(), 3u) << late->body();
  EXPECT_EQ(told[2]["error"]["type"], "TimeoutError");
  EXPECT_GE(told[1]["choices"][0]["token_ids"].size(), 5u);
  EXPECT_TRUE(told[1]["choices"][0]["finish_reason"].is_null());
}

TEST_F(GenerationTest, AFullServerSaysSo) {
  ServeConfig config = base_config();
  config.limits.max_num_active_seqs = 2;
  start(std::move(config));
  json body = completion("Once upon a time", 40);
  steps().close();
  auto first = begin("POST", "/v1/completions", body.dump());
  auto second = begin("POST", "/v1/completions", body.dump());
  ASSERT_TRUE(test::eventually([&] { return context().gate.num_requests() == 2; }));
  const auto refused = send("POST", "/v1/completions", body.dump());
  EXPECT_EQ(refused->status(), 429);
  EXPECT_FALSE(refused->header("Retry-After").empty());
  steps().open();
  ASSERT_TRUE(first->wait() && second->wait());
  EXPECT_EQ(first->status(), 200);
  EXPECT_EQ(second->status(), 200);
  context().gate.drain();
  EXPECT_EQ(send("POST", "/v1/completions", body.dump())->status(), 503);
}

TEST_F(GenerationTest, SpeculationIsToldInUsageAndOrigins) {
  json body = completion("one two three one two three one two three one two", 40);
  body["return_token_origins"] = true;
  const json on = post("/v1/completions", body);
  const json& details = on["usage"]["completion_tokens_details"];
  ASSERT_TRUE(details.is_object()) << on["usage"].dump();
  int drafted = 0;
  std::string text;
  for (const json& piece : on["choices"][0]["token_origins"]) {
    if (piece["origin"] == "draft") drafted += piece["num_tokens"].get<int>();
    text += piece["text"].get<std::string>();
  }
  EXPECT_GT(drafted, 0);
  EXPECT_EQ(drafted, details["accepted_prediction_tokens"]);
  EXPECT_EQ(text, on["choices"][0]["text"].get<std::string>());
  body["speculative"] = {{"enabled", false}};
  const json off = post("/v1/completions", body);
  EXPECT_EQ(off["choices"][0]["text"], on["choices"][0]["text"]);
  EXPECT_FALSE(off["usage"].contains("completion_tokens_details"));
}

}  // namespace
}  // namespace foretoken
