#include "chat/calls/chat_parser.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

constexpr const char* kTwoCalls =
    "<tool_call>{\"name\": \"now\"}</tool_call><tool_call>{\"name\": \"now\"}</tool_call>";

TEST(ChatParser, WithoutParsersEverythingIsContent) {
  const std::string text = std::string(" <think>a</think>") + kTwoCalls;
  EXPECT_EQ(parse_all_ways(options_of("", ""), text), (ChatSum{"", text, {}}));
}

TEST(ChatParser, WithoutToolsThereAreNoCalls) {
  ChatParserOptions options = options_of("hermes");
  options.tools = nullptr;
  EXPECT_EQ(parse_all_ways(options, kTwoCalls), (ChatSum{"", kTwoCalls, {}}));
  options = options_of("hermes");
  options.tool_choice = "none";
  EXPECT_EQ(parse_all_ways(options, kTwoCalls), (ChatSum{"", kTwoCalls, {}}));
}

TEST(ChatParser, OneCallWhereParallelCallsAreOff) {
  ChatParserOptions options = options_of("hermes");
  options.parallel_tool_calls = false;
  EXPECT_EQ(parse_all_ways(options, kTwoCalls), (ChatSum{"", "", {{"now", "{}"}}}));
}

TEST(ChatParser, ReasoningThenCalls) {
  const std::string text = "<think><tool_call>no</think>\n\n" + std::string(kTwoCalls);
  EXPECT_EQ(parse_all_ways(options_of("hermes", "qwen3"), text),
            (ChatSum{"<tool_call>no", "", {{"now", "{}"}, {"now", "{}"}}}));
}

// A model that begins a call of a tool forgot to say that it is done with thinking.
TEST(ChatParser, ACallEndsTheReasoning) {
  const std::string text = "So.<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  ChatParserOptions options = options_of("hermes", "qwen3");
  options.starts_in_reasoning = true;
  EXPECT_EQ(parse_all_ways(options, text), (ChatSum{"So.", "", {{"now", "{}"}}}));
}

TEST(ChatParser, PiecesComeInTheOrderOfTheText) {
  auto parser = make_chat_parser(options_of("hermes", "qwen3"));
  ASSERT_TRUE(parser.ok());
  const std::vector<ChatPiece> pieces = parser.value()->push(
      "<think>a</think>b<tool_call>{\"name\": \"now\"}</tool_call>c<tool_call>{\"name\": \"f\"}"
      "</tool_call>");
  std::string kinds;
  for (const ChatPiece& piece : pieces) kinds += "rct"[static_cast<int>(piece.kind)];
  EXPECT_EQ(kinds, "rctct");
}

TEST(ChatParser, PiecesByKind) {
  auto parser = make_chat_parser(options_of("hermes", "qwen3"));
  ASSERT_TRUE(parser.ok());
  ChatDelta sum;
  for (const char* text : {"<think>a</think>b<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ",
                           "1}}</tool_call>c<tool_call>{\"name\": \"now\"}</tool_call>"}) {
    add_pieces(parser.value()->push(text), &sum);
  }
  EXPECT_EQ(sum.reasoning, "a");
  EXPECT_EQ(sum.content, "bc");
  ASSERT_EQ(sum.tool_calls.size(), 2u);
  EXPECT_EQ(sum.tool_calls[0].name, "f");
  EXPECT_EQ(sum.tool_calls[0].arguments, R"({"a": 1})");
  EXPECT_EQ(sum.tool_calls[1].index, 1);
  EXPECT_FALSE(sum.tool_calls[1].id.empty());
}

TEST(ChatParser, UnknownNamesNameTheKnownOnes) {
  ChatParserOptions options = options_of("hermse");
  EXPECT_NE(make_chat_parser(options).status().message().find("hermes"), std::string::npos);
  EXPECT_EQ(make_chat_parser(options).status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(check_parser_names("", "gwen").message().find("qwen3"), std::string::npos);
  for (const std::string& name : tool_parser_names())
    EXPECT_TRUE(check_parser_names(name, "").ok());
  for (const std::string& name : reasoning_parser_names()) {
    EXPECT_TRUE(check_parser_names("", name).ok());
  }
}

TEST(ChatParser, PromptsThatOpenReasoning) {
  EXPECT_TRUE(opens_reasoning("qwen3", "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(opens_reasoning("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning("qwen3", "What is <think>?<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_FALSE(opens_reasoning("", "<think>"));
}

TEST(ChatParser, AParserOfCallsIsForToolsThatNothingForces) {
  ChatParserOptions options;
  options.tools = nlohmann::ordered_json::parse(R"([{"function": {"name": "f"}}])");
  EXPECT_FALSE(uses_tool_parser(options));
  options.tool_parser = "hermes";
  EXPECT_TRUE(uses_tool_parser(options));
  for (const char* choice : {"none", "required", "f"}) {
    options.tool_choice = choice;
    EXPECT_FALSE(uses_tool_parser(options)) << choice;
  }
}

TEST(ChatParser, SpecialTokensWhereTheMarkersMayBeSome) {
  EXPECT_TRUE(needs_special_tokens(options_of("mistral")));
  EXPECT_FALSE(needs_special_tokens(options_of("llama3_json")));
  EXPECT_TRUE(needs_special_tokens(options_of("", "mistral")));
  ChatParserOptions options = options_of("mistral");
  options.tool_choice = "required";
  EXPECT_FALSE(needs_special_tokens(options));
  options = options_of("mistral");
  options.tools = nullptr;
  EXPECT_FALSE(needs_special_tokens(options));
}

const std::vector<std::string> kRandomPieces = {"<tool_call>",
                                                "</tool_call>",
                                                "<function=",
                                                "now",
                                                ">",
                                                "</function>",
                                                "<parameter=",
                                                "city",
                                                "</parameter>",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                "\"name\"",
                                                ":",
                                                "\"now\"",
                                                ",",
                                                "\"arguments\"",
                                                "\\",
                                                "\"",
                                                "[TOOL_CALLS]",
                                                "[ARGS]",
                                                "<|python_tag|>",
                                                "<|python_start|>",
                                                "(",
                                                ")",
                                                "=",
                                                "'",
                                                "1",
                                                "-",
                                                "true",
                                                "None",
                                                "<think>",
                                                "</think>",
                                                "[THINK]",
                                                "[/THINK]",
                                                " ",
                                                "\n",
                                                ";",
                                                "é",
                                                "🦀",
                                                "<",
                                                "<｜tool▁calls▁begin｜>",
                                                "<｜tool▁call▁begin｜>",
                                                "<｜tool▁sep｜>",
                                                "```json",
                                                "<|tool_call|>",
                                                "{\"name\": \"now\", \"arguments\": {",
                                                "[now(",
                                                "```",
                                                "<｜tool▁call▁end｜>"};

// Random text of the formats' own pieces: no cut changes the sum, nothing crashes, arguments are
// JSON, and where no call has begun or was forced, what is not a marker or white space is in the
// sum. What stands between a broken call and its end is nobody's.
TEST(ChatParser, RandomTexts) {
  std::mt19937 generator(11);
  for (const std::string& tool_parser : tool_parser_names()) {
    for (int round = 0; round < 60; ++round) {
      ChatParserOptions options = options_of(tool_parser);
      const std::vector<std::string> reasoning = reasoning_parser_names();
      if (round % 2 == 1) options.reasoning_parser = reasoning[generator() % reasoning.size()];
      if (round % 5 == 4) options.tool_choice = round % 10 == 4 ? "required" : "now";
      std::string text;
      for (int i = 0; i < 30; ++i) text += kRandomPieces[generator() % kRandomPieces.size()];
      const ChatSum whole = parse_pieces(options, {text});
      std::vector<std::string> bytes;
      for (const char byte : text) bytes.emplace_back(1, byte);
      ASSERT_EQ(parse_pieces(options, bytes), whole) << tool_parser << ": " << text;
      for (const char* kept : {"é", "🦀"}) {
        const auto count = [&](const std::string& in) {
          size_t found = 0;
          for (size_t at = in.find(kept); at != std::string::npos; at = in.find(kept, at + 1)) {
            ++found;
          }
          return found;
        };
        size_t found = count(whole.content) + count(whole.reasoning);
        for (const auto& [name, arguments] : whole.calls) {
          EXPECT_TRUE(nlohmann::json::parse(arguments).is_object()) << text;
          found += count(arguments) + count(name);
        }
        const bool all = whole.calls.empty() && options.tool_choice != "required";
        EXPECT_LE(found, count(text)) << tool_parser << ": " << text << "\n" << whole;
        if (all) {
          EXPECT_EQ(found, count(text)) << tool_parser << ": " << text << "\n" << whole;
        }
      }
    }
  }
}

// Layout between the reasoning and a form is no content, whatever the pieces.
TEST(ChatParser, DropsLayoutBeforeAForm) {
  ChatParserOptions options = options_of("", "qwen3");
  options.tools = nullptr;
  options.starts_in_reasoning = true;
  options.drop_leading_space = true;
  const std::vector<std::string> pieces = {"so\n</th", "ink>\n", "\n", " no ", "\n"};
  const ChatSum sum = parse_pieces(options, pieces);
  EXPECT_EQ(sum.content, "no \n");
  EXPECT_EQ(sum.reasoning, "so\n");
  options.drop_leading_space = false;
  EXPECT_EQ(parse_pieces(options, pieces).content, "\n\n no \n");
}

}  // namespace
}  // namespace foretoken
