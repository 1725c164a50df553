#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

constexpr const char* kChatNgram =
    R"({"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":1,
        "length_policy":"fixed"})";

std::vector<std::string> chat(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"chat",
                                  "--model",
                                  bundled_model().string(),
                                  "--log-level",
                                  "error",
                                  "--history-file",
                                  "",
                                  "--max-tokens",
                                  "12",
                                  "--temperature",
                                  "0",
                                  "--ignore-eos"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

CommandSetting with_input(const std::string& text) {
  CommandSetting setting;
  setting.input = text;
  return setting;
}

CommandSetting on_terminal(const std::vector<std::string>& environment) {
  CommandSetting setting;
  setting.terminal = true;
  setting.environment = environment;
  return setting;
}

CommandResult talk(const std::string& input, const std::vector<std::string>& more = {}) {
  return run_command(chat(more), with_input(input));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) {
    text.erase(at, part.size());
  }
  return text;
}

nlohmann::json saved_chat(const test::ScratchFolder& scratch, const std::string& input) {
  const std::string file = scratch.file("chat.json");
  const CommandResult result = talk(input + "/save " + file + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(read_file(file));
}

TEST(Chat, AnswersLinesOfAPipe) {
  const CommandResult result = talk("Hello\nAnd then?\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.out.empty());
  EXPECT_FALSE(has(result.out, "> "));
  EXPECT_FALSE(has(result.out + result.err, "\x1b")) << "no colours without a terminal";
  EXPECT_TRUE(has(result.err, "[12 tokens in ")) << result.err;
  EXPECT_TRUE(has(result.err, " tokens/s; cut at max_tokens")) << result.err;
}

// As PowerShell pipes a text.
TEST(Chat, AByteOrderMarkIsNoPartOfAQuestion) {
  const test::ScratchFolder scratch;
  const nlohmann::json saved = saved_chat(scratch, "\xEF\xBB\xBFHello\r\n");
  EXPECT_EQ(saved["messages"][0]["content"], "Hello");
}

TEST(Chat, TheConversationGoesOn) {
  const test::ScratchFolder scratch;
  const nlohmann::json all =
      saved_chat(scratch, "/system Be kind\nOne\n\"\"\"\nTwo\nlines\n\"\"\"\nA long \\\nline\n");
  const nlohmann::json& messages = all["messages"];
  ASSERT_EQ(messages.size(), 7u) << all;
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[0]["content"], "Be kind");
  EXPECT_EQ(messages[1]["content"], "One");
  EXPECT_EQ(messages[2]["role"], "assistant");
  EXPECT_EQ(messages[3]["content"], "Two\nlines");
  EXPECT_EQ(messages[5]["content"], "A long \nline");
}

TEST(Chat, UndoRetryResetAndLoad) {
  const test::ScratchFolder scratch;
  const auto once = saved_chat(scratch, "One\nTwo\n/undo\n")["messages"];
  ASSERT_EQ(once.size(), 2u);
  EXPECT_EQ(once[0]["content"], "One");
  const auto again = saved_chat(scratch, "One\n/retry\n")["messages"];
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1]["content"], once[1]["content"]) << "greedy answers are equal";
  EXPECT_TRUE(saved_chat(scratch, "One\n/reset\n")["messages"].empty());
  const std::string file =
      scratch.write("old.json", R"({"messages": [{"role": "user", "content": "One"}],
                                    "sampling": {"temperature": 0, "max_tokens": 12}})");
  const auto loaded = saved_chat(scratch, "/load " + file + "\n/retry\n")["messages"];
  EXPECT_EQ(loaded, again);
}

TEST(Chat, SettingsAreChecked) {
  const CommandResult result = talk(
      "/set top_p 7\n/set temprature 1\n/set temperature 0.5\n/params\n/frobnicate\n/quitt\n"
      "/undo\n/retry\n/load /nonexistent/chat\n/spec on\n/set n 2\n/help\n/quit\nHello\n");
  EXPECT_EQ(result.exit_code, 0);
  const std::vector<std::string> parts = {"top_p is 7",
                                          "did you mean 'temperature'?",
                                          "/frobnicate is unknown",
                                          "did you mean '/quit'?",
                                          "no question to take back",
                                          "no question to answer again",
                                          "/nonexistent/chat",
                                          "--speculative-config",
                                          "n is 1"};
  const std::vector<std::string> errors = result.errors();
  ASSERT_EQ(errors.size(), parts.size()) << result.err;
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(has(errors[i], parts[i])) << errors[i];
  EXPECT_TRUE(has(result.out, "temperature 0.5, top_p 1")) << result.out;
  for (const char* name : {"/help", "/system", "/reset", "/undo", "/retry", "/set", "/params",
                           "/save", "/load", "/stats", "/spec", "/quit"}) {
    EXPECT_TRUE(has(result.out, name)) << name;
  }
  EXPECT_FALSE(has(result.err, "tokens/s")) << "nothing is answered after /quit";
}

TEST(Chat, TheOldestTurnsGiveWay) {
  const CommandResult result =
      talk("One two three\nFour five six\nSeven eight nine\nTen eleven twelve\n" +
               std::string(600, 'x') + "\nAgain\n",
           {"--max-model-len", "64"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has(result.err, "oldest messages were forgotten")) << result.err;
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_TRUE(has(result.errors()[0], "--max-model-len")) << result.errors()[0];
  EXPECT_EQ(result.err.find("tokens/s") == std::string::npos, false);
}

TEST(Chat, AcceptedDraftsAreTinted) {
  const std::string limit = "/set max_tokens 48\n";
  const std::string question = "Tom and Tom and Tom and Tom and Tom and\n";
  const std::string input = limit + question + "/spec off\n" + question + "/spec 2\n";
  const std::vector<std::string> common = {"--speculative-config", kChatNgram};
  std::vector<std::string> coloured = common;
  coloured.insert(coloured.end(), {"--color", "always"});
  const CommandResult plain = talk(input, common);
  const CommandResult tinted = talk(input, coloured);
  ASSERT_EQ(tinted.exit_code, 0) << tinted.err;
  EXPECT_TRUE(has(tinted.out, "\x1b[36m")) << tinted.out;
  const std::string bare = without(without(tinted.out, "\x1b[36m"), "\x1b[0m");
  EXPECT_EQ(bare, plain.out);
  EXPECT_FALSE(has(plain.out, "\x1b"));
  EXPECT_TRUE(has(plain.err, "draft acceptance rate ")) << plain.err;
  EXPECT_TRUE(has(plain.err, "mean acceptance length ")) << plain.err;
  EXPECT_TRUE(has(plain.out, "speculation on, ngram, at most 2 drafts")) << plain.out;
}

TEST(Chat, StatisticsOfTheSession) {
  const CommandResult result = talk("Hello\n/stats\n", {"--speculative-config", kChatNgram});
  EXPECT_TRUE(has(result.out, "1 answers, 12 tokens in ")) << result.out;
  EXPECT_TRUE(has(result.out, "KV blocks free\ndraft acceptance rate ")) << result.out;
}

TEST(Chat, AListThatIsTheDefaultIsTold) {
  const CommandResult result =
      talk("/spec on\n/spec 9\n",
           {"-sc", R"({"method":[{"method":"ngram","num_speculative_tokens":8},"draft_model"],
                  "num_speculative_tokens":3})"});
  EXPECT_TRUE(has(result.out, "speculation on, ngram+draft_model, at most 8 drafts")) << result.out;
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_TRUE(has(result.errors()[0], "ngram+draft_model makes 1 to 8 drafts, not 9"));
}

TEST(Chat, DraftersAreChosenAndTold) {
  const CommandResult result = talk(
      "/spec ngram 2\n/set max_tokens 40\nTom and Tom and Tom and\n/stats\n/spec off\n/spec "
      "7\n/spec eagle\n/spec draft_model\n/params\n",
      {"-sc", R"([{"method":"draft_model","num_speculative_tokens":3,"length_policy":"fixed"},
                       {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,
                        "prompt_lookup_min":1}])"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "speculation on, ngram, at most 2 drafts")) << result.out;
  EXPECT_TRUE(has(result.out, "\nngram: draft acceptance rate ")) << result.out;
  EXPECT_FALSE(has(result.out, "draft_model: draft acceptance rate ")) << result.out;
  EXPECT_TRUE(has(result.out, "speculation off")) << result.out;
  EXPECT_TRUE(has(result.out, "speculation on, draft_model, at most 3 drafts")) << result.out;
  ASSERT_EQ(result.errors().size(), 2u) << result.err;
  EXPECT_TRUE(has(result.errors()[0], "makes 1 to 4 drafts, not 7")) << result.errors()[0];
  EXPECT_TRUE(has(result.errors()[1], "draft_model, ngram")) << result.errors()[1];
  EXPECT_TRUE(has(result.err, ", by position 0.")) << result.err;
}

TEST(Chat, WithoutATemplateTheTextGoesOn) {
  const test::ScratchFolder scratch;
  const auto model = copy_model(scratch);
  auto config = nlohmann::json::parse(read_file(model / "tokenizer_config.json"));
  config.erase("chat_template");
  write_file(model / "tokenizer_config.json", config.dump());
  const CommandResult result =
      run_command({"chat", "--model", model.string(), "--log-level", "error", "--max-tokens", "8"},
                  with_input("Once upon a time\n"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "no chat template")) << result.err;
  EXPECT_TRUE(has(result.err, "tokens/s")) << result.err;
}

TEST(Chat, OnATerminal) {
  const test::ScratchFolder scratch;
  const std::string history = scratch.file("state/history");
  const std::string start_of_answer = talk("Tell me a story\n").out.substr(0, 8);
  Command command(
      {"chat", "--model", bundled_model().string(), "--log-level", "error", "--history-file",
       history, "--temperature", "0", "--max-tokens", "1900", "--ignore-eos", "--cpu-threads", "1"},
      on_terminal({"TERM=xterm", "HOME=/nonexistent"}));
  ASSERT_TRUE(command.wait_for("> "));
  command.type("Tell me a story\r");
  ASSERT_TRUE(command.wait_for(start_of_answer));
  command.type("\x03");
  ASSERT_TRUE(command.wait_for("; stopped]"));
  command.type("/set max_tokens 3\r");
  ASSERT_TRUE(command.wait_for("max_tokens is 3"));
  command.type("\x03");
  command.type("H\xC3\xA4llo\r");
  ASSERT_TRUE(command.wait_for("[3 tokens"));
  command.type("\x1b[A\x1b[A\r");  // two lines up: /set
  // A text that is pasted is one question, however many lines it has.
  command.type("\x1b[200~One\r\tTwo\x1b[201~\r");
  const std::string saved = scratch.file("chat.json");
  command.type("/save " + saved + "\r");
  ASSERT_TRUE(command.wait_for("saved to"));
  command.type("/quit\r");
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(has(result.out, "\x1b[2m")) << "remarks are dim on a terminal";
  const std::string kept = read_file(history);
  EXPECT_TRUE(has(kept, "Tell\\040me\\040a\\040story")) << kept;
  EXPECT_TRUE(has(read_file(saved), "\"One\\n\\tTwo\"")) << read_file(saved);
}

TEST(Chat, NoColorIsRespected) {
  Command command(chat({}), on_terminal({"TERM=xterm", "NO_COLOR=1"}));
  ASSERT_TRUE(command.wait_for("> "));
  command.type("Hello\r");
  ASSERT_TRUE(command.wait_for(" tokens in "));
  command.type("/quit\r");
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_FALSE(has(result.out, "\x1b[2m")) << result.out;
}

}  // namespace
}  // namespace foretoken
