#include "serve/flow/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

struct Path {
  std::vector<int32_t> ids;
  double sum = 0;
};

class BeamSearchTest : public test::ServeRig {
 protected:
  static json body(int width, int max_tokens) {
    return {{"prompt", "Once upon a time"},
            {"max_tokens", max_tokens},
            {"temperature", 0},
            {"n", width},
            {"ignore_eos", true},
            {"use_beam_search", true},
            {"return_token_ids", true},
            {"logprobs", 1}};
  }

  // The candidates of a path: its 2 * width likeliest tokens, one request at a time.
  static std::vector<Path> extended(const std::vector<int32_t>& prompt, const Path& path,
                                    int width) {
    Request request;
    request.prompt_token_ids = prompt;
    request.prompt_token_ids.insert(request.prompt_token_ids.end(), path.ids.begin(),
                                    path.ids.end());
    request.sampling.max_tokens = 1;
    request.sampling.temperature = 0;
    request.sampling.logprobs = 2 * width;
    request.sampling.ignore_eos = true;
    const std::vector<RequestOutput> outputs = engine().generate({request});
    std::vector<Path> paths;
    for (const Logprob& token : outputs.at(0).logprobs.at(0).top) {
      Path& next = paths.emplace_back(path);
      next.ids.push_back(token.token_id);
      next.sum += token.logprob;
    }
    return paths;
  }

  static std::vector<Path> best_paths(int width, int max_tokens) {
    std::vector<int32_t> prompt;
    EXPECT_TRUE(engine().encode("Once upon a time", true, &prompt).ok());
    std::vector<Path> paths(1);
    for (int i = 0; i < max_tokens; ++i) {
      std::vector<Path> next;
      for (const Path& path : paths) {
        for (Path& one : extended(prompt, path, width)) next.push_back(std::move(one));
      }
      std::stable_sort(next.begin(), next.end(),
                       [](const Path& a, const Path& b) { return a.sum > b.sum; });
      next.resize(static_cast<size_t>(width));
      paths = std::move(next);
    }
    return paths;
  }
};

TEST_F(BeamSearchTest, FindsTheBestPaths) {
  constexpr int kWidth = 3;
  constexpr int kTokens = 5;
  const json answer = post("/v1/completions", body(kWidth, kTokens));
  const std::vector<Path> expected = best_paths(kWidth, kTokens);
  ASSERT_EQ(answer["choices"].size(), size_t{kWidth});
  for (size_t i = 0; i < expected.size(); ++i) {
    const json& choice = answer["choices"][i];
    EXPECT_EQ(choice["token_ids"], json(expected[i].ids)) << i;
    EXPECT_EQ(choice["finish_reason"], "length");
    double sum = 0;
    for (const json& logprob : choice["logprobs"]["token_logprobs"]) sum += logprob.get<double>();
    EXPECT_NEAR(sum, expected[i].sum, 1e-3) << i;
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], kWidth * kTokens);
}

TEST_F(BeamSearchTest, AWidthOfOneIsGreedyAndStreams) {
  json one = body(1, 8);
  const json beam = post("/v1/completions", one);
  json greedy = one;
  greedy.erase("use_beam_search");
  EXPECT_EQ(beam["choices"][0]["text"], post("/v1/completions", greedy)["choices"][0]["text"]);
  one["stream"] = true;
  std::string text;
  for (const json& event : events(send("POST", "/v1/completions", one.dump())->body())) {
    for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
  }
  EXPECT_EQ(beam["choices"][0]["text"], text);
}

TEST_F(BeamSearchTest, PromptsAreCutAsOthersAre) {
  for (const char* side : {"left", "right"}) {
    json one = body(1, 6);
    one["truncate_prompt_tokens"] = 2;
    one["truncation_side"] = side;
    const json beam = post("/v1/completions", one);
    one.erase("use_beam_search");
    EXPECT_EQ(beam["choices"][0]["text"], post("/v1/completions", one)["choices"][0]["text"])
        << side;
  }
}

TEST_F(BeamSearchTest, ItsTimeIsThatOfTheWhole) {
  Request request;
  request.prompt = "Once upon a time";
  request.sampling.max_tokens = 4;
  request.timeout_seconds = 1e-9;
  const auto beams = std::make_shared<BeamSearch>(engine(), 1.0f);
  const Status status = beams->start(request, [](const RequestOutput&) {});
  EXPECT_EQ(status.code(), StatusCode::kAborted);
}

TEST_F(BeamSearchTest, AChatEndsWithTheModelsEnd) {
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Tell me a story."}}}},
                     {"max_tokens", 4},
                     {"n", 2},
                     {"use_beam_search", true},
                     {"length_penalty", 0.5}};
  const json answer = post("/v1/chat/completions", chat);
  ASSERT_EQ(answer["choices"].size(), 2u);
  for (const json& choice : answer["choices"]) {
    EXPECT_TRUE(choice["finish_reason"] == "length" || choice["finish_reason"] == "stop");
    EXPECT_TRUE(choice["message"]["content"].is_string());
  }
}

TEST_F(BeamSearchTest, SaysWhatDoesNotGoTogether) {
  json form = body(2, 4);
  form["structured_outputs"] = {{"regex", "[a-z]+"}};
  const json refused = post("/v1/completions", form, 400);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("follows no form"),
            std::string::npos);
  const json wide = post("/v1/completions", body(100, 4), 400);
  EXPECT_NE(wide["error"]["message"].get<std::string>().find("--max-logprobs"), std::string::npos);
  json stops = body(2, 4);
  stops["stop"] = "x";
  const auto exchange = send("POST", "/v1/completions", stops.dump());
  EXPECT_EQ(exchange->status(), 200);
}

TEST_F(BeamSearchTest, EndsSoonWhenAborted) {
  Request request;
  request.prompt = "Once upon a time";
  request.sampling.n = 2;
  request.sampling.max_tokens = 400;
  request.sampling.ignore_eos = true;
  const auto beams = std::make_shared<BeamSearch>(engine(), 1.0f);
  std::vector<RequestOutput> outputs;
  std::promise<void> finished;
  beams->abort();
  ASSERT_TRUE(beams
                  ->start(request,
                          [&](const RequestOutput& output) {
                            outputs.push_back(output);
                            if (output.request_finished) finished.set_value();
                          })
                  .ok());
  finished.get_future().wait();
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_TRUE(outputs.back().request_finished);
  EXPECT_EQ(outputs.front().finish_reason, FinishReason::kAbort);
}

}  // namespace
}  // namespace foretoken
