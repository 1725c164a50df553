#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/cpu_clock.h"
#include "text/grammar.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

class HostileGrammarTest : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  void SetUp() override {
    tokenizer_ = load_fixture(std::filesystem::path(kSourceFolder) / "models/foretoken-7m");
    ASSERT_NE(tokenizer_, nullptr);
    vocab_ = tokenizer_->vocab_size();
    auto compiler = tokenizer_->grammar_compiler(vocab_, eos_ids_);
    ASSERT_TRUE(compiler.ok()) << compiler.status().message();
    compiler_ = std::move(compiler).value();
  }

  Result<std::shared_ptr<const Grammar>> compile(const StructuredOutputs& wanted) {
    FT_ASSIGN_OR_RETURN(const GrammarText text, grammar_text(wanted));
    return compiler_->compile(text);
  }

  static StructuredOutputs of_schema(std::string schema) {
    StructuredOutputs wanted;
    wanted.json = std::move(schema);
    return wanted;
  }
  static StructuredOutputs of_regex(std::string text) {
    StructuredOutputs wanted;
    wanted.regex = std::move(text);
    return wanted;
  }
  static StructuredOutputs of_grammar(std::string text) {
    StructuredOutputs wanted;
    wanted.grammar = std::move(text);
    return wanted;
  }

  const std::vector<int32_t> eos_ids_{0};
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
  int32_t vocab_ = 0;
};

std::string rules_in_a_row(int count) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < count; ++i) {
    text += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + "\n";
  }
  return text + "r" + std::to_string(count) + " ::= \"b\"\n";
}

TEST_F(HostileGrammarTest, ChainsHaveRoomOrAreRefused) {
  EXPECT_TRUE(compile(of_grammar(rules_in_a_row(5000))).ok());
  const Status status = compile(of_grammar(rules_in_a_row(40000))).status();
  EXPECT_NE(status.message().find("deep in each other"), std::string::npos);
  Json definitions = {{"d2000", {{"type", "object"}}}};
  for (int i = 0; i < 2000; ++i) {
    Json& named = definitions["d" + std::to_string(i)];
    named = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}, {"type", "object"}};
  }
  EXPECT_TRUE(compile(of_schema(Json{{"$ref", "#/$defs/d0"}, {"$defs", definitions}}.dump())).ok());
}

// The automaton of what several regexes fit goes on by the product of their places.
TEST_F(HostileGrammarTest, RegexesThatMeetAreBounded) {
  const auto fault_of = [&](const std::string& text) {
    return compile(of_grammar(text)).status().message();
  };
  const auto joined = [](const char* between, const std::function<std::string(int)>& one) {
    std::string all = one(1);
    for (int i = 2; i < 60; ++i) all += between + one(i);
    return all;
  };
  const auto counted = [](int i) { return ".*a.{" + std::to_string(i) + "}b"; };
  const auto regexes = [&](int i) { return "/" + counted(i) + "/"; };
  EXPECT_NE(fault_of("start: X\nX: " + joined(" & ", regexes)).find("'X' joins with '&'"),
            std::string::npos);
  EXPECT_EQ(fault_of("start: X\nX: " + joined(" | ", regexes)), "");
  EXPECT_NE(
      fault_of("start: %json {\"type\":\"string\",\"allOf\":[" +
               joined(",", [&](int i) { return "{\"pattern\":\"" + counted(i) + "\"}"; }) + "]}")
          .find("hold for one text at once"),
      std::string::npos);
  const auto words = [](int i) { return "~/word" + std::to_string(i) + "/ & ~(W | \"x)\")"; };
  EXPECT_EQ(fault_of("start: X\nX: /[a-z]+/ & " + joined(" & ", words) + "\nW: \"w\"\n"), "");
}

// What a hostile text may cost: an error or a grammar, within seconds, and no crash.
TEST_F(HostileGrammarTest, HostileTextsEnd) {
  std::string nested = R"({"type":"string"})";
  for (int i = 0; i < 300; ++i) nested = R"({"type":"array","items":)" + nested + "}";
  const StructuredOutputs hostile[] = {
      of_schema(nested),
      of_schema(R"({"type":"string","pattern":"^(a|b|c|d){1,5000}x{1,5000}$"})"),
      of_schema(R"({"type":"array","minItems":10000,"maxItems":100000,"items":{"type":"object"}})"),
      of_regex("((((a{1,100}){1,100}){1,100}){1,100}){1,100}"),
      of_regex(std::string(20000, '(') + "a" + std::string(20000, ')')),
      of_regex(".*a.{20}b.{20}c.{20}d"),
      of_regex(std::string(1'000'000, '[')),
      of_regex("[a" + std::string(900'000, '[') + ":"),
      of_regex("(?=a)" + std::string(1'000'000, '{')),
      of_schema(R"({"const":-9223372036854775808})"),
      of_schema(R"({"type":"integer","const":-1e19})"),
      of_schema(R"({"enum":["a",[{"b":-9223372036854775808}]]})"),
      of_grammar("start: %json {\"const\":-9223372036854775808}\n"),
      of_grammar("start: %json {\"type\":\"integer\",\"minimum\":-1e19,\"maximum\":-1e19}\n"),
      of_grammar("start: " + std::string(50000, '(') + "\"a\"" + std::string(50000, ')')),
      of_grammar("start: start start | \"a\" | \"\""),
      of_grammar("start: a\na: a a | b\nb: \"x\" | a"),
  };
  for (const StructuredOutputs& wanted : hostile) {
    // Of this thread alone, so that a busy machine does not count.
    const int64_t begin = thread_cpu_ns();
    const auto made = compile(wanted);
    if (made.ok()) {
      const auto mask = made.value()->start(eos_ids_, false);
      std::vector<uint32_t> words(static_cast<size_t>(vocab_ + 31) / 32);
      if (mask.ok()) (void)mask.value()->fill(words);
    }
    const double elapsed = static_cast<double>(thread_cpu_ns() - begin) * 1e-9;
    EXPECT_LT(elapsed, 120);
    std::printf("%.3f s: %s\n", elapsed,
                made.ok() ? "compiled" : made.status().message().substr(0, 100).c_str());
  }
}

}  // namespace
}  // namespace foretoken
