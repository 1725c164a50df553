#include "text/grammar.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cpu_clock.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int32_t kEos = 0;

class GrammarTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = load_fixture(std::filesystem::path(kSourceFolder) / "models/foretoken-7m");
    ASSERT_NE(tokenizer_, nullptr);
    vocab_ = tokenizer_->vocab_size() + 21;  // models pad their vocabulary
    auto compiler = tokenizer_->grammar_compiler(vocab_, eos_ids_);
    ASSERT_TRUE(compiler.ok()) << compiler.status().message();
    compiler_ = std::move(compiler).value();
  }

  Result<std::shared_ptr<const Grammar>> compile(const StructuredOutputs& wanted) {
    FT_ASSIGN_OR_RETURN(const GrammarText text, grammar_text(wanted));
    return compiler_->compile(text);
  }

  std::unique_ptr<TokenMask> start(const StructuredOutputs& wanted, bool ignore_eos = false) {
    auto grammar = compile(wanted);
    EXPECT_TRUE(grammar.ok()) << grammar.status().message();
    if (!grammar.ok()) return nullptr;
    auto mask = grammar.value()->start(eos_ids_, ignore_eos);
    EXPECT_TRUE(mask.ok());
    return std::move(mask).value();
  }

  std::vector<uint32_t> mask_of(TokenMask& mask) const {
    std::vector<uint32_t> words(static_cast<size_t>(vocab_ + 31) / 32, 0xabababab);
    const Status status = mask.fill(words);
    EXPECT_TRUE(status.ok()) << status.message();
    return words;
  }
  static bool allows(const std::vector<uint32_t>& words, int32_t id) {
    return (words[static_cast<size_t>(id) / 32] >> (id % 32) & 1u) != 0;
  }
  std::vector<int32_t> allowed(TokenMask& mask) const {
    const std::vector<uint32_t> words = mask_of(mask);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < static_cast<int32_t>(words.size()) * 32; ++id) {
      if (allows(words, id)) ids.push_back(id);
    }
    return ids;
  }

  // Whether the text, token by token, is an output.
  bool accepts(const StructuredOutputs& wanted, const std::string& text) {
    const auto mask = start(wanted);
    if (mask == nullptr) return false;
    const auto ids = tokenizer_->encode(text, false);
    EXPECT_TRUE(ids.ok());
    for (const int32_t id : ids.value()) {
      if (!allows(mask_of(*mask), id) || !mask->consume(id).ok()) return false;
    }
    return allows(mask_of(*mask), kEos);
  }

  // What is wrong with a grammar, or nothing.
  std::string fault_of(const std::string& text) {
    StructuredOutputs wanted;
    wanted.grammar = text;
    const auto made = compile(wanted);
    return made.ok() ? std::string() : made.status().message();
  }

  // A random output, ended as soon as it may be; nothing when it grows too long.
  std::optional<std::string> walk(TokenMask& mask, uint32_t seed, int max_tokens = 400) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < max_tokens; ++i) {
      const std::vector<int32_t> ids = allowed(mask);
      EXPECT_FALSE(ids.empty());
      if (ids.empty() || ids[0] == kEos) return text;
      const int32_t id = ids[random() % ids.size()];
      text += *tokenizer_->token_bytes(id);
      EXPECT_TRUE(mask.consume(id).ok());
    }
    return std::nullopt;
  }

  const std::vector<int32_t> eos_ids_{kEos, 3};
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
  int32_t vocab_ = 0;
};

StructuredOutputs json_schema(std::string schema) {
  StructuredOutputs wanted;
  wanted.json = std::move(schema);
  return wanted;
}
StructuredOutputs regex(std::string text) {
  StructuredOutputs wanted;
  wanted.regex = std::move(text);
  return wanted;
}
StructuredOutputs grammar(std::string text) {
  StructuredOutputs wanted;
  wanted.grammar = std::move(text);
  return wanted;
}

constexpr const char* kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},
        "age":{"type":"integer","minimum":0,"maximum":150},"ok":{"type":"boolean"}},
        "required":["name","age"],"additionalProperties":false})";

TEST_F(GrammarTest, RandomWalksGiveJsonOfTheSchema) {
  int num_complete = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto mask = start(json_schema(kPerson));
    const std::optional<std::string> text = walk(*mask, seed);
    if (!text) continue;
    ++num_complete;
    const Json value = Json::parse(*text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << *text;
    EXPECT_TRUE(value.at("name").is_string());
    EXPECT_LE(value.at("age").get<int>(), 150);
  }
  EXPECT_GE(num_complete, 5);
}

TEST_F(GrammarTest, JudgesTextsOfEveryForm) {
  EXPECT_TRUE(accepts(json_schema(kPerson), R"({"name": "Ann", "age": 7})"));
  EXPECT_FALSE(accepts(json_schema(kPerson), R"({"name": "Ann"})"));
  EXPECT_FALSE(accepts(json_schema(kPerson), R"({"name": "Ann", "age": 151})"));
  StructuredOutputs object;
  object.json_object = true;
  EXPECT_TRUE(accepts(object, R"({"a": [1, null, {"b": "c"}]})"));
  EXPECT_FALSE(accepts(object, "[1]"));
  EXPECT_TRUE(accepts(regex("[0-9]{3}-[a-f]+"), "123-abc"));
  EXPECT_FALSE(accepts(regex("[0-9]{3}-[a-f]+"), "123-"));
  // As Python and JavaScript write them.
  EXPECT_TRUE(accepts(regex(R"({"[\w-.]+": [^[\]]{,3}}\Z)"), R"({"a-b.c": 12})"));
  EXPECT_FALSE(accepts(regex(R"({"[\w-.]+": [^[\]]{,3}}\Z)"), R"({"a-b.c": [1]})"));
  EXPECT_TRUE(accepts(regex(R"(\<[!-/:-@[-`]+\cA\0)"), std::string("<[@]\x01\0", 6)));
  StructuredOutputs choice;
  choice.choice = {"yes", "no (really)", "[a]"};
  for (const std::string& text : choice.choice) EXPECT_TRUE(accepts(choice, text)) << text;
  EXPECT_FALSE(accepts(choice, "y"));
  EXPECT_FALSE(accepts(choice, "a"));
  const StructuredOutputs lark = grammar("start: word (\" and \" word)*\nword: /[a-z]+/\n");
  EXPECT_TRUE(accepts(lark, "cats and dogs"));
  EXPECT_FALSE(accepts(lark, "cats or dogs"));
}

TEST_F(GrammarTest, ReadsGbnf) {
  const StructuredOutputs sums = grammar(R"g(# sums
root ::= term ("+" term)* "\n"?   # may end a line
term ::= number | "(" root-2 ")"
root-2 ::=
    term
  | term "-" term
number ::= [1-9] [0-9]{0,2} | "\x30" | [^\x00-\u00ff]
)g");
  EXPECT_TRUE(accepts(sums, "12+(7-3)+0"));
  EXPECT_TRUE(accepts(sums, "5\n"));
  EXPECT_TRUE(accepts(sums, "你"));
  EXPECT_FALSE(accepts(sums, "1234"));
  EXPECT_FALSE(accepts(sums, "(7-3"));
  EXPECT_NE(fault_of("root ::= other").find("no rule 'other'"), std::string::npos);
  EXPECT_NE(fault_of("root ::= \"a").find("line 1"), std::string::npos);
  EXPECT_NE(fault_of("a ::= \"b\"").find("no rule 'root'"), std::string::npos);
  EXPECT_NE(fault_of("root ::= [z-a]").find("backwards"), std::string::npos);
  EXPECT_NE(fault_of("root ::= \"a\"\nroot ::= \"b\"").find("twice"), std::string::npos);
  EXPECT_NE(
      fault_of("a ::= \"b\"\nroot ::= <nowhere>").find("rule 'root', line 2: <nowhere> is no"),
      std::string::npos);
  EXPECT_NE(fault_of("root ::= <[0]>").find("ends an output"), std::string::npos);
  EXPECT_NE(fault_of("root ::= <[99999999]>").find("no token of this model"), std::string::npos);
  EXPECT_NE(fault_of("root ::= " + std::string(5000, '(')).find("deeply"), std::string::npos);
}

// As llama.cpp and XGrammar have it; a line break goes on within parentheses alone.
TEST_F(GrammarTest, BlanksBesideRepetitionsOfGbnf) {
  const StructuredOutputs spaced =
      grammar("root ::= pair { 2 , 3 } \"!\" ?\npair ::= ( [a-c] + # letters\n  \"-\" {2} )\n");
  for (const char* text : {"ab--c--", "a--b--c--!"}) EXPECT_TRUE(accepts(spaced, text)) << text;
  for (const char* text : {"a--", "a-b--", "a--b--!!"}) EXPECT_FALSE(accepts(spaced, text)) << text;
  EXPECT_NE(fault_of("root ::= \"a\"\n{2}").find("rule"), std::string::npos);
}

// A text had as many readings as it has cuts: to go through all of them would have no end.
TEST_F(GrammarTest, NestedRepetitionsOfGbnf) {
  const std::string letters(300, 'a');
  for (const char* nested :
       {"root ::= ((((\"a\"*)*)*)*)*", "root ::= ((\"a\"+ \"b\"?)+ | (\"c\"* \"d\"*))*",
        "root ::= many*\nmany ::= (one | \"\")+\none ::= \"a\"*"}) {
    EXPECT_TRUE(accepts(grammar(nested), letters)) << nested;
    EXPECT_FALSE(accepts(grammar(nested), letters + "x")) << nested;
  }
  const StructuredOutputs pairs = grammar("root ::= (\"a\"{2} | \"b\"? \"c\")* (\"d\" | ){2}");
  for (const char* text : {"", "aa", "bccaa", "cd", "dd"})
    EXPECT_TRUE(accepts(pairs, text)) << text;
  for (const char* text : {"a", "b", "aab", "ddd"}) EXPECT_FALSE(accepts(pairs, text)) << text;
}

// Each character looks at the rest of the grammar, which must not mean reading it.
TEST_F(GrammarTest, LongLiteralsOfGbnf) {
  std::string letters;
  while (letters.size() < 900'000) letters += "aé水\\n";
  EXPECT_EQ(fault_of("root ::= \"" + letters + "\" other"),
            "structured_outputs: GBNF: there is no rule 'other'");
  EXPECT_NE(fault_of("root ::= \n\"" + letters + "\\q\"").find("line 2: '\\q' is no"),
            std::string::npos);
  StructuredOutputs wanted;
  wanted.grammar = "root ::= \"" + letters.substr(0, 800) + "\"";
  std::string text;
  for (int i = 0; i < 100; ++i) text += "aé水\n";
  EXPECT_TRUE(accepts(wanted, text));
  text[0] = 'b';
  EXPECT_FALSE(accepts(wanted, text));
}

// llama.cpp's own, with texts within and without the language of each.
TEST_F(GrammarTest, ReadsLlamaCppsGrammars) {
  const std::filesystem::path folder = data_folder("gbnf");
  const Json cases = Json::parse(std::ifstream(folder / "cases.json"));
  EXPECT_EQ(cases.size(), 8u);
  for (const Json& one : cases) {
    const std::string name = one["name"];
    std::ifstream file(folder / (name + ".gbnf"));
    const StructuredOutputs wanted = grammar(std::string(std::istreambuf_iterator<char>(file), {}));
    for (const Json& text : one["accept"]) EXPECT_TRUE(accepts(wanted, text)) << name << text;
    for (const Json& text : one["reject"]) EXPECT_FALSE(accepts(wanted, text)) << name << text;
  }
}

// Where one literal is the beginning of other texts, every way to read the text counts.
TEST_F(GrammarTest, GbnfTriesEveryReading) {
  const StructuredOutputs words = grammar("root ::= (\"abc\" | [a-z])+ \"!\"");
  EXPECT_TRUE(accepts(words, "abd!"));
  EXPECT_TRUE(accepts(words, "abcab!"));
  EXPECT_TRUE(accepts(grammar("root ::= [0-9]+ \"5\""), "1255"));
  EXPECT_FALSE(accepts(grammar("root ::= [0-9]+ \"5\""), "5"));
}

TEST_F(GrammarTest, GbnfNamesTokens) {
  const int32_t a = *tokenizer_->token_to_id("a");
  const std::string named = "<[" + std::to_string(a) + "]>";
  const auto mask = start(grammar("root ::= " + named + " !" + named + " \"x\""));
  EXPECT_EQ(allowed(*mask), std::vector<int32_t>{a});
  ASSERT_TRUE(mask->consume(a).ok());
  const std::vector<int32_t> others = allowed(*mask);
  EXPECT_GT(others.size(), 1000u);
  for (const int32_t id : {a, eos_ids_[0], eos_ids_[1]}) {
    EXPECT_EQ(std::count(others.begin(), others.end(), id), 0) << id;
  }
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("b")).ok());
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("x")).ok());
  EXPECT_TRUE(mask->is_complete());
}

TEST_F(GrammarTest, FormsBeginBehindReasoning) {
  const auto behind = [](StructuredOutputs wanted, bool space) {
    wanted.reasoning_ends = {"</think>"};
    wanted.space_after_reasoning = space;
    return wanted;
  };
  const StructuredOutputs digits = behind(regex("[0-9]+"), false);
  EXPECT_TRUE(accepts(digits, "Let me <think> of\na number.</think>42"));
  EXPECT_FALSE(accepts(digits, "Let me think.</think>\n\n42"));
  EXPECT_FALSE(accepts(digits, "42"));
  EXPECT_FALSE(accepts(digits, "</think>four"));
  // As Python and JavaScript write them.
  EXPECT_TRUE(accepts(regex(R"({"[\w-.]+": [^[\]]{,3}}\Z)"), R"({"a-b.c": 12})"));
  EXPECT_FALSE(accepts(regex(R"({"[\w-.]+": [^[\]]{,3}}\Z)"), R"({"a-b.c": [1]})"));
  EXPECT_TRUE(accepts(regex(R"(\<[!-/:-@[-`]+\cA\0)"), std::string("<[@]\x01\0", 6)));
  StructuredOutputs choice;
  choice.choice = {"yes", "no"};
  EXPECT_TRUE(accepts(behind(choice, true), "Hm.</think>\n\nno"));
  EXPECT_TRUE(accepts(behind(choice, true), "</think>no"));
  EXPECT_FALSE(accepts(behind(choice, true), "</think>maybe"));
  EXPECT_FALSE(accepts(behind(choice, true), "</think>" + std::string(9, '\n') + "no"));
  EXPECT_TRUE(
      accepts(behind(json_schema(kPerson), true), "x</think>\n{\"name\": \"A\", \"age\": 1}"));
  const StructuredOutputs sums =
      behind(grammar("root ::= thought (\"+\" thought)*\nthought ::= [0-9]"), false);
  EXPECT_TRUE(accepts(sums, "1 + x?</think>1+2"));
  EXPECT_FALSE(accepts(sums, "1 + x?</think>1+x"));
  EXPECT_TRUE(accepts(behind(grammar("start: thought\nthought: /a+/"), false), "b</think>aa"));
  StructuredOutputs tag;
  tag.structural_tag = R"({"type":"structural_tag","triggers":["<f>"],"structures":[
    {"begin":"<f>","schema":{"type":"integer"},"end":"</f>"}]})";
  EXPECT_TRUE(accepts(behind(tag, false), "<f>x</think>so <f>4</f>."));
  EXPECT_FALSE(accepts(behind(tag, false), "x</think>so <f>a</f>."));
}

// gpt-oss's; with a model whose markers are tokens, tests/doors/schemas_door.py.
TEST_F(GrammarTest, FormsBeginInTheFinalChannel) {
  StructuredOutputs digits = regex("[0-9]+");
  digits.reasoning_ends = {"<|channel|>final<|message|>"};
  EXPECT_TRUE(accepts(digits, "<|channel|>final<|message|>42"));
  EXPECT_TRUE(accepts(digits, "<|channel|>final <|constrain|>json<|message|>4"));
  EXPECT_FALSE(accepts(digits, "<|channel|>final<|message|>four"));
  EXPECT_FALSE(accepts(digits, "<|channel|>analysis<|message|>42"));
  EXPECT_FALSE(accepts(digits, "<|channel|>commentary<|message|>42"));
  EXPECT_FALSE(accepts(digits, "42"));
}

TEST_F(GrammarTest, FollowsStructuralTags) {
  StructuredOutputs tag;
  tag.structural_tag = R"({"type":"structural_tag","triggers":["<f="],"structures":[
    {"begin":"<f=sum>","schema":{"type":"object","properties":{"a":{"type":"integer"}},
     "required":["a"],"additionalProperties":false},"end":"</f>"},
    {"begin":"<f=say>","schema":{"type":"string"},"end":"</f>"}]})";
  EXPECT_TRUE(accepts(tag, "Nothing to call here."));
  EXPECT_TRUE(accepts(tag, "Let me see <f=sum>{\"a\": 4}</f> and more"));
  EXPECT_TRUE(accepts(tag, "<f=say>\"hi\"</f><f=sum>{\"a\":1}</f>"));
  EXPECT_FALSE(accepts(tag, "<f=sum>{\"b\": 4}</f>"));
  EXPECT_FALSE(accepts(tag, "<f=other>"));
  EXPECT_FALSE(accepts(tag, "half <f=sum>{\"a\": 4}"));
  tag.structural_tag = R"({"type":"structural_tag","format":{}})";
  EXPECT_NE(compile(tag).status().message().find("`type`"), std::string::npos);
}

TEST_F(GrammarTest, OptionsShapeJson) {
  StructuredOutputs wanted = json_schema(
      R"({"type":"object","properties":{"a":{"type":"object","properties":{}}},"required":["a"]})");
  EXPECT_TRUE(accepts(wanted, R"({"a" : {"x": 1}, "y": 2})"));
  wanted.disable_additional_properties = true;
  EXPECT_FALSE(accepts(wanted, R"({"a": {"x": 1}})"));
  EXPECT_FALSE(accepts(wanted, R"({"a": {}, "y": 2})"));
  EXPECT_TRUE(accepts(wanted, R"({"a": {}})"));
  wanted.disable_any_whitespace = true;
  EXPECT_FALSE(accepts(wanted, "{\n\"a\": {}}"));
  wanted.disable_any_whitespace = false;
  wanted.whitespace_pattern = "_";
  EXPECT_TRUE(accepts(wanted, R"({"a":_{}})"));
  EXPECT_FALSE(accepts(wanted, R"({"a": {}})"));
}

TEST_F(GrammarTest, EosComesOnlyWhereTheOutputMayEnd) {
  const auto mask = start(regex("ab?"));
  EXPECT_FALSE(allows(mask_of(*mask), kEos));
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("a")).ok());
  EXPECT_TRUE(allows(mask_of(*mask), kEos));
  EXPECT_TRUE(allows(mask_of(*mask), 3));
  EXPECT_FALSE(mask->is_complete());
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("b")).ok());
  EXPECT_EQ(allowed(*mask), (std::vector<int32_t>{kEos, 3}));
  EXPECT_TRUE(mask->is_complete());
  EXPECT_TRUE(mask->ends(3));
  EXPECT_FALSE(mask->ends(4));
}

TEST_F(GrammarTest, IgnoredEosComesWhereNothingElseCan) {
  const auto mask = start(regex("ab?"), true);
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("a")).ok());
  EXPECT_EQ(allowed(*mask), std::vector<int32_t>{*tokenizer_->token_to_id("b")});
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("b")).ok());
  EXPECT_EQ(allowed(*mask), (std::vector<int32_t>{kEos, 3}));
}

TEST_F(GrammarTest, WithoutEosIdsACompleteOutputHasNoMask) {
  auto compiler = tokenizer_->grammar_compiler(vocab_, {});
  ASSERT_TRUE(compiler.ok());
  const auto text = grammar_text(regex("a"));
  const auto compiled = compiler.value()->compile(text.value());
  ASSERT_TRUE(compiled.ok());
  const auto mask = std::move(compiled.value()->start({}, false)).value();
  ASSERT_TRUE(mask->consume(*tokenizer_->token_to_id("a")).ok());
  EXPECT_TRUE(allowed(*mask).empty());
  EXPECT_TRUE(mask->is_complete());
}

TEST_F(GrammarTest, ForcedIdsSpellTheTextThatIsCertain) {
  const auto forced = [&](TokenMask& mask) { return mask.forced(mask_of(mask)); };
  const auto literal = start(regex("there[0-9]"));
  std::string text;
  for (int32_t id = forced(*literal); id >= 0 && text.size() < 9; id = forced(*literal)) {
    const std::vector<int32_t> ids = allowed(*literal);
    for (const int32_t other : ids) {
      EXPECT_LE(tokenizer_->token_bytes(other)->size(), tokenizer_->token_bytes(id)->size());
    }
    text += *tokenizer_->token_bytes(id);
    ASSERT_TRUE(literal->consume(id).ok());
  }
  EXPECT_EQ(text, "there");
  EXPECT_EQ(forced(*start(regex("[a-z]+"))), -1);
  const auto end = start(regex("ab?"), true);
  ASSERT_TRUE(end->consume(*tokenizer_->token_to_id("a")).ok());
  EXPECT_EQ(forced(*end), *tokenizer_->token_to_id("b"));
  ASSERT_TRUE(end->consume(*tokenizer_->token_to_id("b")).ok());
  EXPECT_EQ(forced(*end), -1);  // two EOS ids
}

// Every prefix of a walk gives the masks again that it gave on the way there.
TEST_F(GrammarTest, RollbackGivesTheSameMasksAgain) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const auto mask = start(json_schema(kPerson));
    std::mt19937 random(seed);
    std::vector<std::vector<uint32_t>> masks;
    std::vector<int32_t> ids;
    for (int i = 0; i < 40; ++i) {
      masks.push_back(mask_of(*mask));
      const std::vector<int32_t> next = allowed(*mask);
      ASSERT_FALSE(next.empty());
      if (next[0] == kEos) break;
      ids.push_back(next[random() % next.size()]);
      ASSERT_TRUE(mask->consume(ids.back()).ok());
    }
    for (int round = 0; round < 30 && !ids.empty(); ++round) {
      const int back = 1 + static_cast<int>(random() % std::min<size_t>(ids.size(), 8));
      ASSERT_TRUE(mask->rollback(back).ok());
      for (size_t i = ids.size() - static_cast<size_t>(back); i < ids.size(); ++i) {
        ASSERT_EQ(mask_of(*mask), masks[i]) << "seed " << seed << " position " << i;
        ASSERT_TRUE(mask->consume(ids[i]).ok());
      }
    }
  }
}

TEST_F(GrammarTest, MasksHaveNoBitsBeyondTheVocabulary) {
  const auto mask = start(regex("(.|\n)*"));
  const std::vector<int32_t> ids = allowed(*mask);
  EXPECT_GT(ids.size(), 1000u);
  EXPECT_LT(ids.back(), tokenizer_->vocab_size());
  for (const int32_t id : ids) {
    if (id != kEos && id != 3) {
      EXPECT_FALSE(tokenizer_->is_special(id)) << id;
    }
  }
}

TEST_F(GrammarTest, RefusalsSayWhy) {
  const auto fault_of = [&](const StructuredOutputs& wanted) {
    const auto made = compile(wanted);
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(fault_of({}).find("names no form"), std::string::npos);
  StructuredOutputs two = regex("a");
  two.json_object = true;
  EXPECT_NE(fault_of(two).find("both json_object and regex"), std::string::npos);
  StructuredOutputs option = regex("a");
  option.disable_any_whitespace = true;
  EXPECT_NE(fault_of(option).find("disable_any_whitespace goes with json"), std::string::npos);
  EXPECT_NE(fault_of(json_schema("{\"type\":")).find("not JSON"), std::string::npos);
  EXPECT_NE(fault_of(json_schema("[1]")).find("object or a boolean"), std::string::npos);
  EXPECT_NE(
      fault_of(json_schema(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})")).find("oneOf"),
      std::string::npos);
  EXPECT_NE(fault_of(json_schema(R"({"type":"array","uniqueItems":true})")).find("uniqueItems"),
            std::string::npos);
  EXPECT_NE(fault_of(regex("(a")).find("structured_outputs: "), std::string::npos);
  EXPECT_EQ(fault_of(regex("(a")).find("non-verbose"), std::string::npos);
  EXPECT_NE(fault_of(grammar("start: nowhere")).find("nowhere"), std::string::npos);
  EXPECT_NE(fault_of(regex(std::string(2 << 20, 'a'))).find("at most"), std::string::npos);
}

TEST_F(GrammarTest, EqualWishesHaveEqualKeysAndOthersDoNot) {
  const auto key = [](const StructuredOutputs& wanted) {
    return grammar_text(wanted).value().key();
  };
  EXPECT_EQ(key(json_schema(kPerson)), key(json_schema(kPerson)));
  StructuredOutputs other = json_schema(kPerson);
  other.disable_any_whitespace = true;
  EXPECT_NE(key(json_schema(kPerson)), key(other));
  EXPECT_NE(key(regex("a")), key(grammar("a")));
}

}  // namespace
}  // namespace foretoken
