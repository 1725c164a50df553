#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "apps/command_run.h"
#include "support/gate.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunBatch : public ::testing::Test {
 protected:
  std::string input(const std::string& text) { return scratch_.write("in.jsonl", text); }
  std::string output() const { return scratch_.file("out.jsonl"); }

  std::vector<std::string> arguments(const std::string& input) const {
    return {"run-batch",   "-i",   input, "-o", output(), "--model", bundled_model().string(),
            "--log-level", "error"};
  }

  CommandResult run(const std::string& text) { return run_command(arguments(input(text))); }

  // Output lines by custom_id; lines without one under "".
  std::map<std::string, json> lines() const {
    std::map<std::string, json> found;
    std::istringstream text(read_file(output()));
    for (std::string line; std::getline(text, line);) {
      json value = json::parse(line);
      const json id = value["custom_id"];
      const bool fresh = found.emplace(id.is_null() ? "" : id.get<std::string>(), value).second;
      EXPECT_TRUE(fresh) << id << " is there twice";
    }
    return found;
  }

  test::ScratchFolder scratch_;
};

std::string request(const std::string& id, const std::string& url, const json& body) {
  return json{{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}

std::string completion(const std::string& id, int max_tokens) {
  return request(id, "/v1/completions",
                 {{"prompt", "A cat"}, {"max_tokens", max_tokens}, {"ignore_eos", true}});
}

TEST_F(RunBatch, ScoresAndRankings) {
  const json pair = {{"text_1", "A cat"}, {"text_2", {"A cat", "12 + 7"}}};
  const json ranking = {{"query", "A cat"}, {"documents", {"12 + 7", "A cat"}}, {"top_n", 1}};
  const CommandResult result =
      run(request("score", "/v1/score", pair) + request("older", "/score", pair) +
          request("ranking", "/v1/rerank", ranking) + request("cohere", "/v2/rerank", ranking) +
          request("wrong", "/v1/rerank", {{"query", "A cat"}}));
  EXPECT_NE(result.out.find("5 of 5 requests done, 1 failed"), std::string::npos) << result.out;
  const auto all = lines();
  for (const char* id : {"score", "older"}) {
    const json& body = all.at(id)["response"]["body"];
    ASSERT_EQ(body["data"].size(), 2U) << body;
    EXPECT_NEAR(body["data"][0]["score"].get<double>(), 1, 1e-5);
    EXPECT_LT(body["data"][1]["score"].get<double>(), 0.9);
    EXPECT_EQ(body["id"].get<std::string>().rfind("score-", 0), 0U);
  }
  for (const char* id : {"ranking", "cohere"}) {
    const json& body = all.at(id)["response"]["body"];
    ASSERT_EQ(body["results"].size(), 1U) << body;
    EXPECT_EQ(body["results"][0]["index"], 1);
  }
  EXPECT_EQ(all.at("wrong")["response"]["status_code"], 400);
}

TEST_F(RunBatch, LabelsAreScoredAsByAServer) {
  const json labels = {{"query", "A"}, {"items", {" cat", " dog"}}, {"label_token_ids", {5, 6}}};
  const CommandResult result = run(request("labels", "/v1/score", labels));
  EXPECT_NE(result.out.find("1 of 1 requests done, 0 failed"), std::string::npos) << result.out;
  const auto all = lines();
  const json& body = all.at("labels")["response"]["body"];
  ASSERT_EQ(body["scores"].size(), 2U) << body;
  EXPECT_EQ(body["scores"][0].size(), 2U);
  EXPECT_EQ(body["object"], "scoring");
}

TEST_F(RunBatch, IdsOfPromptsAreTold) {
  const auto body = [](const char* name, json prompt) {
    return json{{"prompt", std::move(prompt)}, {"max_tokens", 2}, {"temperature", 0}, {name, true}};
  };
  json echoed = body("return_tokens_as_token_ids", "A cat");
  echoed.update({{"echo", true}, {"logprobs", 0}});
  run(request("text", "/v1/completions", body("return_token_ids", "A cat")) +
      request("named", "/v1/completions", echoed));
  const auto all = lines();
  const json told = all.at("text")["response"]["body"]["choices"][0]["prompt_token_ids"];
  ASSERT_GT(told.size(), 1U) << told;
  const json& choice = all.at("named")["response"]["body"]["choices"][0];
  EXPECT_EQ(choice["text"].get<std::string>().rfind("A cat", 0), 0U) << choice;
  EXPECT_EQ(choice["logprobs"]["tokens"][0], "token_id:" + std::to_string(told[0].get<int>()));
}

TEST_F(RunBatch, HalvesOfCharactersAreReplaced) {
  const std::string line =
      request("half", "/v1/completions", {{"prompt", "A cat@"}, {"echo", true}});
  std::string cut = line;
  cut.replace(cut.find('@'), 1, "\\ud83d");
  ASSERT_EQ(run(cut).exit_code, 0);
  const auto all = lines();
  const json& choice = all.at("half")["response"]["body"]["choices"][0];
  EXPECT_EQ(choice["text"].get<std::string>().rfind("A cat\xEF\xBF\xBD", 0), 0U);
}

TEST_F(RunBatch, EveryKindOfRequest) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const CommandResult result =
      run(request("chat", "/v1/chat/completions",
                  {{"messages", messages}, {"max_tokens", 5}, {"ignore_eos", true}}) +
          request("text", "/v1/completions",
                  {{"prompt", {"A cat", "A dog"}},
                   {"max_tokens", 4},
                   {"echo", true},
                   {"ignore_eos", true}}) +
          "\n" + request("unknown", "/v1/completions", {{"prompt", "A"}, {"temprature", 1}}) +
          request("range", "/v1/completions", {{"prompt", "A"}, {"top_p", 7}}) +
          request("model", "/v1/completions", {{"prompt", "A"}, {"model", "none-such"}}) +
          request("url", "/v1/images", {{"prompt", "A"}}) + "{\"custom_id\": \n" +
          request("last", "/v1/completions", {{"prompt", {1, 2, 3}}, {"max_tokens", 2}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("8 of 8 requests done, 4 failed"), std::string::npos) << result.out;
  const auto all = lines();
  ASSERT_EQ(all.size(), 8u);
  const json& chat = all.at("chat");
  EXPECT_EQ(chat["response"]["status_code"], 200);
  EXPECT_TRUE(chat["error"].is_null());
  EXPECT_EQ(chat["response"]["body"]["object"], "chat.completion");
  EXPECT_EQ(chat["response"]["body"]["usage"]["completion_tokens"], 5);
  EXPECT_EQ(chat["response"]["body"]["choices"][0]["finish_reason"], "length");
  const json& choices = all.at("text")["response"]["body"]["choices"];
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[1]["text"].get<std::string>().rfind("A dog", 0), 0u);
  const auto message = [&](const char* id) {
    return all.at(id)["response"]["body"]["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(all.at("unknown")["response"]["body"]["warnings"],
            json({"'temprature' is unknown; did you mean 'temperature'?"}));
  EXPECT_NE(message("range").find("top_p"), std::string::npos);
  EXPECT_EQ(all.at("model")["response"]["status_code"], 404);
  EXPECT_NE(message("url").find("/v1/images"), std::string::npos);
  EXPECT_EQ(all.at("")["error"]["line"], 8);
  EXPECT_EQ(all.at("last")["response"]["status_code"], 200);
}

// OpenAI's batches take them, too. An address may be whole, or lack its first slash.
TEST_F(RunBatch, Responses) {
  const json body = {{"input", "Hi"}, {"max_output_tokens", 3}, {"ignore_eos", true}};
  json later = body;
  later["background"] = true;
  json next = body;
  next["previous_response_id"] = "resp_1";
  const std::string url = "http://localhost:8000/v1/responses/";
  run(request("one", url, body) + request("later", "v1/responses", later) +
      request("next", url, next));
  const auto all = lines();
  const json& answer = all.at("one")["response"]["body"];
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["id"].get<std::string>().rfind("resp_", 0), 0u);
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["usage"]["output_tokens"], 3);
  EXPECT_FALSE(answer["output"][0]["content"][0]["text"].get<std::string>().empty());
  EXPECT_EQ(all.at("later")["response"]["status_code"], 400);
  EXPECT_EQ(all.at("next")["response"]["status_code"], 404);
}

TEST_F(RunBatch, LogprobsChoicesAndEmbeddings) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const CommandResult result =
      run(request("chat", "/v1/chat/completions",
                  {{"messages", messages},
                   {"max_tokens", 3},
                   {"n", 2},
                   {"logprobs", true},
                   {"top_logprobs", 2},
                   {"ignore_eos", true}}) +
          request("text", "/v1/completions",
                  {{"prompt", "A cat sat"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}}) +
          request("vectors", "/v1/embeddings", {{"input", {"A cat", "A dog"}}}) +
          request("base64", "/v1/embeddings", {{"input", "A cat"}, {"encoding_format", "base64"}}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto all = lines();
  const json& choices = all.at("chat")["response"]["body"]["choices"];
  ASSERT_EQ(choices.size(), 2u) << all.at("chat");
  const json& positions = choices[1]["logprobs"]["content"];
  ASSERT_EQ(positions.size(), 3u);
  EXPECT_EQ(positions[0]["top_logprobs"].size(), 2u);
  const json& echoed = all.at("text")["response"]["body"]["choices"][0];
  EXPECT_EQ(echoed["text"], "A cat sat");
  EXPECT_GE(echoed["logprobs"]["tokens"].size(), 2u);
  EXPECT_TRUE(echoed["logprobs"]["token_logprobs"][0].is_null());
  std::string joined;
  for (const json& token : echoed["logprobs"]["tokens"]) joined += token.get<std::string>();
  EXPECT_EQ(joined, "A cat sat");
  const json& data = all.at("vectors")["response"]["body"]["data"];
  ASSERT_EQ(data.size(), 2u) << all.at("vectors");
  EXPECT_GT(data[0]["embedding"].size(), 10u);
  EXPECT_NE(data[0]["embedding"], data[1]["embedding"]);
  EXPECT_TRUE(all.at("base64")["response"]["body"]["data"][0]["embedding"].is_string());
}

TEST_F(RunBatch, GoesOnWhereItWas) {
  const std::string text =
      completion("a", 3) + completion("b", 3) + "broken\n" + completion("c", 3);
  ASSERT_EQ(run(text).exit_code, 0);
  const auto first = lines();
  ASSERT_EQ(first.size(), 4u);
  // As if the run had been killed while it wrote the last line.
  std::string written = read_file(output());
  std::string last_id;
  {
    const size_t start = written.rfind('\n', written.size() - 2) + 1;
    const json last = json::parse(written.substr(start));
    last_id = last["custom_id"].is_null() ? "" : last["custom_id"].get<std::string>();
    written.resize(start + (written.size() - start) / 2);
  }
  write_file(output(), written);
  const CommandResult again = run(text);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto second = lines();
  ASSERT_EQ(second.size(), 4u);
  for (const auto& [id, line] : first) {
    EXPECT_EQ(second.at(id)["id"] == line["id"], id != last_id) << id;
  }
  const CommandResult third = run(text);
  EXPECT_NE(third.out.find("4 of 4 requests done"), std::string::npos) << third.out;
  EXPECT_EQ(lines(), second);
}

TEST_F(RunBatch, AnInterruptKeepsWhatIsDone) {
  std::string text = completion("short", 1);
  for (int i = 0; i < 300; ++i) text += completion("long-" + std::to_string(i), 500);
  const std::string file = input(text);
  Command command(arguments(file));
  EXPECT_TRUE(
      test::eventually([&] { return fs::exists(output()) && fs::file_size(output()) > 0; }));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("run the same command again"), std::string::npos) << result.err;
  const auto done = lines();
  EXPECT_EQ(done.count("short"), 1u);
  EXPECT_LT(done.size(), 301u);
  for (const auto& [id, line] : done) EXPECT_EQ(line["response"]["status_code"], 200) << id;
}

TEST_F(RunBatch, BadFilesAreRefusedAsAWhole) {
  const auto refused = [&](const CommandResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
    ASSERT_EQ(result.errors().size(), 1u) << result.err;
    EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
  };
  refused(run(completion("a", 1) + completion("a", 1)), "custom_id 'a'");
  refused(run("\n"), "holds no request");
  refused(run_command(arguments("/nonexistent/in.jsonl")), "/nonexistent/in.jsonl");
  for (const std::string foreign : {"my diary\n", "my diary", "{\"id\":5"}) {
    write_file(output(), foreign);
    refused(run(completion("a", 1)), "is no batch output");
    EXPECT_EQ(read_file(output()), foreign);
  }
}

TEST_F(RunBatch, SpeculationOfEachRequest) {
  const json prompt = {
      {"prompt", "Tom and Tom and Tom and"}, {"max_tokens", 32}, {"temperature", 0}};
  json off = prompt;
  off["speculative"] = {{"enabled", false}};
  json one = prompt;
  one["speculative"] = {{"num_speculative_tokens", 1}};
  json wrong = prompt;
  wrong["speculative"] = {{"method", "eagle"}};
  json two = prompt;
  two["n"] = 2;
  two["temperature"] = 1;
  std::string text;
  for (const auto& [id, body] :
       {std::pair{"plain", prompt}, {"off", off}, {"one", one}, {"wrong", wrong}, {"two", two}}) {
    text += request(id, "/v1/completions", body);
  }
  std::vector<std::string> all = arguments(input(text));
  all.insert(all.end(), {"--per-request-spec-decode-metrics", "summary", "-sc",
                         R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":1,
                             "length_policy":"fixed"})"});
  const CommandResult result = run_command(all);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, json> done = lines();
  const auto body = [&](const char* id) { return done[id]["response"]["body"]; };
  const auto metrics = [&](const char* id) { return body(id)["metrics"]["speculative_decoding"]; };
  EXPECT_EQ(metrics("plain")["num_spec_tokens"], 3);
  EXPECT_GT(metrics("plain")["num_spec_steps"], 0);
  EXPECT_EQ(metrics("plain")["acceptance_histogram"].size(), 4u);
  EXPECT_EQ(metrics("off")["num_spec_steps"], 0);
  EXPECT_EQ(metrics("one")["num_draft_tokens"], metrics("one")["num_spec_steps"]);
  EXPECT_TRUE(metrics("two").is_null());
  EXPECT_EQ(body("plain")["choices"][0]["text"], body("off")["choices"][0]["text"]);
  EXPECT_EQ(body("plain")["choices"][0]["text"], body("one")["choices"][0]["text"]);
  EXPECT_EQ(done["wrong"]["response"]["status_code"], 400);
}

TEST_F(RunBatch, MetricsOfSpeculationNeedIt) {
  for (const auto& [level, part] :
       {std::pair{"summary", "start it with --speculative-config"}, {"detailed", "use summary"}}) {
    std::vector<std::string> all = arguments(input(completion("a", 2)));
    all.insert(all.end(), {"--per-request-spec-decode-metrics", level});
    const CommandResult result = run_command(all);
    EXPECT_EQ(result.exit_code, 1);
    ASSERT_EQ(result.errors().size(), 1u) << result.err;
    EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
  }
}

}  // namespace
}  // namespace foretoken
