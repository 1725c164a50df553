#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "chat/calls/chat_parser.h"

namespace foretoken {

// What came of a text.
struct ChatSum {
  std::string reasoning;
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name and arguments

  bool operator==(const ChatSum&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const ChatSum& sum) {
  out << "reasoning '" << sum.reasoning << "' content '" << sum.content << "'";
  for (const auto& [name, arguments] : sum.calls) out << " call " << name << arguments;
  return out;
}

// Functions get_weather(city: string, days: integer, units: string or null) and now().
inline const nlohmann::ordered_json& sample_tools() {
  static const auto tools = nlohmann::ordered_json::parse(R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
        "units": {"type": ["string", "null"]}, "where": {"type": "object"},
        "exact": {"type": "boolean"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now"}}])");
  return tools;
}

inline ChatParserOptions options_of(const std::string& tool_parser,
                                    const std::string& reasoning_parser = "") {
  ChatParserOptions options;
  options.tool_parser = tool_parser;
  options.reasoning_parser = reasoning_parser;
  options.tools = sample_tools();
  return options;
}

inline void add_sample(const std::vector<ChatPiece>& pieces, ChatSum* sum) {
  for (const ChatPiece& piece : pieces) {
    if (piece.kind == ChatPiece::Kind::kReasoning) sum->reasoning += piece.text;
    if (piece.kind == ChatPiece::Kind::kContent) sum->content += piece.text;
    if (piece.kind != ChatPiece::Kind::kToolCall) continue;
    const auto index = static_cast<size_t>(piece.call_index);
    if (index == sum->calls.size()) {
      EXPECT_FALSE(piece.call_id.empty());
      EXPECT_FALSE(piece.call_name.empty());
      sum->calls.emplace_back(piece.call_name, "");
    } else {
      EXPECT_TRUE(piece.call_id.empty() && piece.call_name.empty());
    }
    ASSERT_EQ(index + 1, sum->calls.size()) << "pieces of a call out of order";
    sum->calls.back().second += piece.text;
  }
}

inline ChatSum parse_pieces(const ChatParserOptions& options,
                            const std::vector<std::string>& pieces) {
  auto parser = make_chat_parser(options);
  EXPECT_TRUE(parser.ok()) << parser.status().message();
  ChatSum sum;
  for (const std::string& piece : pieces) add_sample(parser.value()->push(piece), &sum);
  add_sample(parser.value()->finish(), &sum);
  return sum;
}

// The sum, which must be the same for every cut in two, byte by byte, and for random cuts.
inline ChatSum parse_all_ways(const ChatParserOptions& options, const std::string& text) {
  const ChatSum whole = parse_pieces(options, {text});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(parse_pieces(options, {text.substr(0, cut), text.substr(cut)}), whole)
        << "cut at " << cut << " of '" << text << "'";
  }
  std::mt19937 generator(7);
  for (size_t round = 0; round < 8; ++round) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t length = round == 0 ? 1 : 1 + generator() % (2 * round);
      pieces.push_back(text.substr(at, length));
      at += length;
    }
    EXPECT_EQ(parse_pieces(options, pieces), whole) << "round " << round << " of '" << text << "'";
  }
  return whole;
}

struct ChatCase {
  const char* what;
  std::string text;
  ChatSum sum;
};

inline void check_cases(const ChatParserOptions& options, const std::vector<ChatCase>& cases) {
  for (const ChatCase& one : cases) {
    EXPECT_EQ(parse_all_ways(options, one.text), one.sum) << one.what;
  }
}

}  // namespace foretoken
