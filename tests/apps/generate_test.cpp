#include <gtest/gtest.h>

#include <cmath>

#include "apps/command_run.h"

namespace foretoken {
namespace {

std::vector<std::string> generate_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"generate", "--model", bundled_model().string(), "--log-level",
                                  "error"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

constexpr const char* kNgram =
    R"({"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":2,
        "length_policy":"fixed"})";

TEST(Generate, TextFollowsThePromptAndStatisticsComeLast) {
  const CommandResult result = run_command(generate_command(
      {"--prompt", "Once upon a time", "--max-tokens", "64", "--temperature", "0", "-sc", kNgram}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Once upon a time", 0), 0u) << result.out;
  EXPECT_NE(result.out.find("tokens/s\n"), std::string::npos) << result.out;
  const std::string last = result.last_line_of_out();
  EXPECT_EQ(last.rfind("drafts in ", 0), 0u) << last;
  EXPECT_NE(last.find(" % of steps, mean acceptance length "), std::string::npos) << last;
  EXPECT_NE(last.find(" (1 + accepted / drafts), "), std::string::npos) << last;
  EXPECT_NE(last.find(" % fewer steps"), std::string::npos) << last;
}

TEST(Generate, SpeculationDoesNotChangeTheIds) {
  const std::vector<std::string> common = {"--json",        "--prompt", "Tom and Tom and Tom and",
                                           "--max-tokens",  "48",       "--ignore-eos",
                                           "--temperature", "0"};
  std::vector<std::string> with = common;
  with.insert(with.end(), {"--speculative-config", kNgram});
  const CommandResult plain = run_command(generate_command(common));
  const CommandResult drafted = run_command(generate_command(with));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(drafted.exit_code, 0) << drafted.err;
  const nlohmann::json a = plain.json_lines().at(0);
  const nlohmann::json b = drafted.json_lines().at(0);
  EXPECT_EQ(a["token_ids"], b["token_ids"]);
  EXPECT_EQ(a["text"], b["text"]);
  EXPECT_EQ(a["token_ids"].size(), 48u);
  EXPECT_EQ(a["finish_reason"], "length");
  EXPECT_EQ(a["usage"]["drafted_tokens"], 0);
  EXPECT_GT(b["usage"]["drafted_tokens"], 0);
}

TEST(Generate, FlagsReachTheRequest) {
  const CommandResult result = run_command(
      generate_command({"--json", "--prompt", "The", "--max_tokens=32", "--stop", "e", "--stop",
                        "a", "--sampling-seed", "5", "--top-k", "20", "--top-p", "0.9"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json line = result.json_lines().at(0);
  EXPECT_EQ(line["finish_reason"], "stop");
  EXPECT_TRUE(line["stop_reason"] == "e" || line["stop_reason"] == "a") << line;
  EXPECT_EQ(line["text"].get<std::string>().find_first_of("ea"), std::string::npos);
}

TEST(Generate, ChatAppliesTheTemplate) {
  const CommandResult result =
      run_command(generate_command({"--json", "--chat", "--prompt", "Hello", "--max-tokens", "4"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json_lines().at(0)["prompt"], "<|user|>Hello<|end|><|assistant|>");
}

TEST(Generate, TemplateArgumentsReachTheTemplate) {
  const test::ScratchFolder scratch;
  const std::string chat_template =
      scratch.write("t.jinja",
                    "{{ greeting }}{% for t in tools %}<{{ t.name }}>{% endfor %}"
                    "{% for d in documents %}[{{ d.text }}]{% endfor %}{{ messages[0].content }}");
  const std::string tools = scratch.write("tools.json", R"([{"name": "f"}, {"name": "g"}])");
  const auto model = copy_model(scratch);
  auto config = nlohmann::json::parse(read_file(model / "tokenizer_config.json"));
  config["chat_template"] = read_file(chat_template);
  write_file(model / "tokenizer_config.json", config.dump());
  const CommandResult result = run_command(
      {"generate", "--model", model.string(), "--log-level", "error", "--json", "--chat",
       "--prompt", "Hi", "--max-tokens", "1", "--chat-template-kwargs", R"({"greeting": "Yo"})",
       "--tools", tools, "--documents", R"([{"text": "doc"}])"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json_lines().at(0)["prompt"], "Yo<f><g>[doc]Hi");
}

TEST(Generate, ChoicesAndLogprobs) {
  const CommandResult result = run_command(generate_command(
      {"--json", "--prompt", "A cat", "--n", "2", "--max-tokens", "3", "--ignore-eos", "--logprobs",
       "2", "--prompt-logprobs", "1", "--seed", "3"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json line = result.json_lines().at(0);
  ASSERT_EQ(line["choices"].size(), 2u);
  for (const nlohmann::json& choice : line["choices"]) {
    ASSERT_EQ(choice["logprobs"].size(), 3u);
    EXPECT_EQ(choice["logprobs"][0]["token_id"], choice["token_ids"][0]);
    EXPECT_EQ(choice["logprobs"][0]["top"].size(), 2u);
    EXPECT_LE(choice["logprobs"][0]["logprob"], 0.0);
  }
  EXPECT_EQ(line["prompt_logprobs"].size(), line["usage"]["prompt_tokens"].get<size_t>() - 1);
  EXPECT_EQ(line["usage"]["completion_tokens"], 6);
  const CommandResult text = run_command(
      generate_command({"--prompt", "A cat", "--n", "2", "--max-tokens", "3", "--seed", "3"}));
  EXPECT_NE(text.out.find("choice 2:\nA cat"), std::string::npos) << text.out;
}

TEST(Generate, FieldsOfTheLineWinOverFlagsAndThoseOverTheModel) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("r.jsonl",
                                         R"({"prompt": "A", "allowed_token_ids": [301]}
{"prompt": "A", "logit_bias": {"302": 100}, "allowed_token_ids": [300, 302]}
{"prompt": "A", "max_tokens": 2}
)");
  const CommandResult result = run_command(
      generate_command({"--json", "--jsonl", file, "--allowed-token-ids", "300", "--ignore-eos",
                        "--override-generation-config", R"({"max_new_tokens": 4})"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = result.json_lines();
  EXPECT_EQ(lines[0]["token_ids"], (nlohmann::json{301, 301, 301, 301}));
  EXPECT_EQ(lines[1]["token_ids"], (nlohmann::json{302, 302, 302, 302}));
  EXPECT_EQ(lines[2]["token_ids"], (nlohmann::json{300, 300}));
}

TEST(Generate, NoTextAndCutPrompts) {
  const CommandResult result = run_command(
      generate_command({"--json", "--prompt", "one two three four five", "--truncate-prompt-tokens",
                        "2", "--no-detokenize", "--max-tokens", "3", "--ignore-eos"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json line = result.json_lines().at(0);
  EXPECT_EQ(line["text"], "");
  EXPECT_EQ(line["token_ids"].size(), 3u);
  EXPECT_EQ(line["usage"]["prompt_tokens"], 2);
}

TEST(Embed, OneVectorForEachPrompt) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("r.jsonl", R"({"prompt": "A dog", "pooling": "mean"}
{"prompt": "A dog", "normalize": false, "request_id": "raw"}
{"prompt": "A dog", "pooling": "max"}
)");
  const CommandResult result =
      run_command({"embed", "--model", bundled_model().string(), "--prompt", "A cat", "--jsonl",
                   file, "--log-level", "error"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 4u);
  const auto length = [&](size_t i) {
    double sum = 0;
    for (const nlohmann::json& value : lines[i]["embedding"]) {
      sum += value.get<double>() * value.get<double>();
    }
    return sum;
  };
  EXPECT_GT(lines[0]["embedding"].size(), 10u);
  EXPECT_NEAR(length(0), 1, 1e-3);
  EXPECT_NEAR(length(1), 1, 1e-3);
  EXPECT_GT(std::abs(length(2) - 1), 1e-2);
  EXPECT_EQ(lines[2]["request_id"], "raw");
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_NE(result.errors()[0].find("pooling is 'max'"), std::string::npos);
}

TEST(Generate, EmbeddingsHaveTheModelsOwnPrompts) {
  const test::ScratchFolder folder;
  const std::string model = copy_model(folder).string();
  write_file(std::filesystem::path(model) / "config_sentence_transformers.json",
             R"({"prompts": {"query": "A big ", "document": ""}, "default_prompt_name": "query"})");
  const auto embedding = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"embed", "--model", model, "--log-level", "error"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json_lines().at(0)["embedding"];
  };
  const auto whole = embedding({"--prompt-name", "document", "--prompt", "A big cat"});
  EXPECT_EQ(embedding({"--prompt", "cat"}), whole);
  EXPECT_EQ(embedding({"--prompt-name", "Query", "--prompt", "cat"}), whole);
  EXPECT_NE(embedding({"--prompt-name", "document", "--prompt", "cat"}), whole);
  const CommandResult none =
      run_command({"embed", "--model", model, "--prompt-name", "none", "--prompt", "cat"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("the model has no prompt 'none'; it has 'query', 'document'"),
            std::string::npos)
      << none.err;
}

TEST(Generate, HumanNumbersAndTheFlagsOfTheEngine) {
  const CommandResult result = run_command(
      generate_command({"--json", "--prompt", "A", "--max-tokens", "2", "--max-model-len", "1k",
                        "--scheduling-policy", "fcfs", "--max-logprobs", "5", "--dtype", "float32",
                        "--generation-config", "vllm", "--seed", "7"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json_lines().at(0)["usage"]["completion_tokens"], 2);
}

TEST(Generate, PromptFileIsOnePrompt) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("prompt.txt",
                                         "\xEF\xBB\xBF"
                                         "A cat\nand a dog");
  const CommandResult result =
      run_command(generate_command({"--json", "--prompt-file", file, "--max-tokens", "3"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json_lines().at(0)["prompt"], "A cat\nand a dog");
}

// As `echo A cat | foretoken generate` gives it, with the mark of Windows before it.
TEST(Generate, APipeIsAPrompt) {
  CommandSetting setting;
  setting.input =
      "\xEF\xBB\xBF"
      "A cat\n";
  for (const bool names_model : {false, true}) {
    std::vector<std::string> arguments = {"generate", "--json", "--max-tokens", "3"};
    if (names_model) arguments.push_back(bundled_model().string());
    const CommandResult result = run_command(arguments, setting);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.json_lines().at(0)["prompt"], "A cat");
  }
  setting.input = "";
  const CommandResult none = run_command({"generate"}, setting);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.errors().at(0).find("a prompt"), std::string::npos);
}

TEST(Generate, BadJsonLinesLeaveTheOthersAlone) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write(
      "requests.jsonl",
      "{\"prompt\": \"A cat\", \"max_tokens\": 5, \"request_id\": \"first\"}\n"
      "{\"prompt\": \"A cat\", \"max_tokens\": 5, \"top_p\": 7}\n"
      "{\"prompt\": \"A cat\"\n"
      "{\"prompt\": \"A cat\", \"max_tokens\": \"five\"}\n"
      "{\"prompt\": \"A cat\", \"temprature\": 1}\n"
      "{\"max_tokens\": 5}\n"
      "{\"prompt_token_ids\": [5, 6, 7], \"max_tokens\": 5, \"ignore_eos\": true}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 5}\n");
  const CommandResult result = run_command(generate_command({"--json", "--jsonl", file}));
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<nlohmann::json> lines = result.json_lines();
  ASSERT_EQ(lines.size(), 8u) << result.out;
  const std::vector<bool> good = {true, false, false, false, false, false, true, true};
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["error"].is_null(), good[i]) << i;
  EXPECT_EQ(lines[0]["request_id"], "first");
  EXPECT_EQ(lines[6]["token_ids"].size(), 5u);
  const std::vector<std::string> errors = result.errors();
  ASSERT_EQ(errors.size(), 5u) << result.err;
  const std::vector<std::string> wanted = {"top_p", "JSON", "max_tokens",
                                           "did you mean 'temperature'?", "exactly one"};
  for (size_t i = 0; i < errors.size(); ++i) {
    EXPECT_NE(errors[i].find("line " + std::to_string(i + 2)), std::string::npos) << errors[i];
    EXPECT_NE(errors[i].find(wanted[i]), std::string::npos) << errors[i];
  }
}

TEST(Generate, DeepOrMalformedMessagesFailOnlyTheirLine) {
  const test::ScratchFolder scratch;
  const std::string deep(100000, '[');
  const std::string file =
      scratch.write("lines.jsonl", "{\"messages\":" + deep + std::string(100000, ']') +
                                       "}\n{\"prompt\":\"ok\",\"max_tokens\":3}\n"
                                       "{\"messages\":[1]}\n");
  const CommandResult result = run_command({"generate", "--model", bundled_model().string(),
                                            "--jsonl", file, "--json", "--log-level", "error"});
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 3u) << result.err;
  EXPECT_EQ(lines[0]["finish_reason"], "error");
  EXPECT_EQ(lines[1]["finish_reason"], "length");
  EXPECT_EQ(lines[2]["finish_reason"], "error");
}

}  // namespace
}  // namespace foretoken
