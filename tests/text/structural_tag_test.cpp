#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/grammar_rig.h"

namespace foretoken {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kObject =
    R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],)"
    R"("additionalProperties":false})";

std::string object() {
  return R"({"type":"json_schema","json_schema":)" + std::string(kObject) + "}";
}

std::string text(const std::string& value) {
  return R"({"type":"const_string","value":")" + value + "\"}";
}

std::string tag(const std::string& begin, const std::string& content, const std::string& end) {
  return R"({"type":"tag","begin":")" + begin + R"(","content":)" + content + R"(,"end":")" + end +
         "\"}";
}

std::string sequence(const std::string& elements) {
  return R"({"type":"sequence","elements":[)" + elements + "]}";
}

const std::string kAny = R"({"type":"any_text"})";
const std::string kUser = R"({"type":"token","token":"<|user|>"})";

class StructuralTagTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const Grammar>> compile(const std::string& format) const {
    StructuredOutputs wanted;
    wanted.structural_tag = R"({"type":"structural_tag","format":)" + format + "}";
    return rig_.compile(wanted);
  }

  void expect(const std::string& format, const Texts& right, const Texts& wrong) const {
    const auto grammar = compile(format);
    ASSERT_TRUE(grammar.ok()) << format << ": " << grammar.status().message();
    for (const std::string& text : right) {
      EXPECT_TRUE(rig_.accepts(*grammar.value(), text)) << format << ": " << text;
    }
    for (const std::string& text : wrong) {
      EXPECT_FALSE(rig_.accepts(*grammar.value(), text)) << format << ": " << text;
    }
  }

  void expect_refused(const std::string& format, const std::string& part) const {
    const auto grammar = compile(format);
    EXPECT_NE(grammar.status().message().find(part), std::string::npos)
        << format << ": " << grammar.status().message();
  }

  const GrammarRig rig_;
};

TEST_F(StructuralTagTest, SinglePieces) {
  expect(text("Hello!"), {"Hello!"}, {"Hello", "Hello!!"});
  expect(object(), {R"({"a": 1})"}, {R"({"b":1})"});
  expect(kAny, {"", "anything <a>"}, {});
  expect(R"({"type":"any_text","excludes":["<f"]})", {"", "ab < f"}, {"a <f"});
  expect(R"({"type":"any_text","max_chars":3})", {"", "abc"}, {"abcd"});
  expect(R"({"type":"regex","pattern":"[0-9]+"})", {"12"}, {"", "1a"});
  expect(R"({"type":"grammar","grammar":"root ::= (\"yes\" | \"no\") \"!\"*"})", {"yes", "no!!"},
         {"maybe"});
  expect(kUser, {"<|user|>"}, {"x"});
}

TEST_F(StructuralTagTest, PartsTogether) {
  expect(R"({"type":"or","elements":[)" + text("yes") + "," + text("yesterday") + "," + object() +
             "]}",
         {"yes", "yesterday", R"({"a":2})"}, {"", "yest"});
  expect(sequence(R"({"type":"optional","content":)" + text("A: ") + "}," + object()),
         {R"(A: {"a":1})", R"({"a":1})"}, {"A: "});
  expect(R"({"type":"plus","content":)" + tag("[", object(), "]") + "}",
         {R"([{"a":1}])", R"([{"a":1}][{"a":2}])"}, {""});
  expect(R"({"type":"repeat","min":1,"max":2,"content":)" + text("ab") + "}", {"ab", "abab"},
         {"", "ababab"});
  expect(sequence(kAny + "," + text("END")), {"END", "a END", "a END END"}, {"a"});
  expect(sequence(kAny + "," + text("Answer: ") + "," + object()), {R"(so Answer: {"a":1})"},
         {R"(so {"a":1})"});
}

TEST_F(StructuralTagTest, Tags) {
  expect(tag("<think>", kAny, "</think>"), {"<think>a b</think>", "<think></think>"},
         {"<think>a", "x", "<think>a</think>b"});
  expect(R"({"type":"tag","begin":"<r>","content":)" + object() + R"(,"end":["</r>","</s>"]})",
         {R"(<r>{"a":1}</r>)", R"(<r>{"a":1}</s>)"}, {R"(<r>{"a":1})"});
  const std::string separated = R"({"type":"tags_with_separator","separator":",","tags":[)" +
                                tag("<i>", object(), "</i>") + "," + tag("<j>", kAny, "</j>") +
                                "]}";
  expect(separated, {"", R"(<i>{"a":1}</i>)", R"(<i>{"a":1}</i>,<j>x</j>)"},
         {R"(<i>{"a":1}</i>,)", R"(<i>{"a":1}</i><j></j>)"});
  // Where a special token ends the text, it is that token; what ends an output needs none.
  expect(sequence(tag("<|user|>q:", kAny, "<|assistant|>") + "," + object()),
         {R"(<|user|>q: hi<|assistant|>{"a":1})"}, {R"(<|user|>q:{"a":1})"});
  expect(tag("<a>", kAny, "<|endoftext|>"), {"<a>hi"}, {"hi"});
}

TEST_F(StructuralTagTest, TriggeredTags) {
  const auto triggered = [](const std::string& more) {
    return R"({"type":"triggered_tags","triggers":["<f="],"tags":[)" +
           tag("<f=sum>", object(), "</f>") + "," + tag("<f=say>", kAny, "</f>") + "]" + more + "}";
  };
  expect(triggered(""), {"", "hello", R"(Let me <f=sum>{"a": 4}</f> and <f=say>x</f>)"},
         {R"(<f=sum>{"b":4}</f>)", "<f=o", R"(x <f=sum>{"a": 4})"});
  expect(triggered(R"(,"at_least_one":true)"), {"<f=say>x</f>", "<f=say>x</f> hi"},
         {"", "hi <f=say>x</f>"});
  expect(triggered(R"(,"stop_after_first":true)"), {"hi", "hi <f=say>x</f>"}, {"<f=say>x</f> "});
  expect(triggered(R"(,"stop_after_first":true,"at_least_one":true)"), {"<f=say>x</f>"},
         {"", "a<f=say>x</f>"});
  expect(sequence(tag("<think>", kAny, "</think>") + "," + triggered("")),
         {"<think>x <f= y</think>hello <f=say>x</f> z"}, {"hello", "<think>a</think><f=x"});
  expect(sequence(tag("<a>", triggered(""), "</a>") + "," + object()),
         {R"(<a>q</a>{"a":1})", R"(<a>hi <f=say>x</f> b</a>{"a":2})"}, {"<a></a>"});
}

TEST_F(StructuralTagTest, DispatchAndTokens) {
  const std::string rules = R"("rules":[["<f1>",)" + object() + R"(],["<f2>",)" + text("x") + "]]";
  expect(R"({"type":"dispatch","excludes":["</r>"],)" + rules + "}",
         {"", R"(hi <f1>{"a":1} yo <f2>x)"}, {"<f1>x", "</r>"});
  expect(R"({"type":"dispatch","loop":false,)" + rules + "}", {"hi <f2>x"}, {"hi <f2>x "});
  expect(R"({"type":"token_dispatch","rules":[[1,)" + text("x") + "]]}",
         {"hi<|user|>x and<|user|>x"}, {"hi<|user|>y"});
  expect(R"({"type":"tag","begin":)" + kUser +
             R"(,"content":{"type":"any_tokens"},"end":{"token":2}})",
         {"<|user|>what ever<|assistant|>", "<|user|><|end|>a<|assistant|>"}, {"<|user|>a"});
  expect(R"({"type":"token_triggered_tags","trigger_tokens":["<|user|>"],"tags":[{"begin":)" +
             kUser + R"(,"content":)" + object() +
             R"(,"end":{"type":"token","token":"<|end|>"}}]})",
         {"", R"(hi <|user|>{"a":1}<|end|> more)"}, {"<|user|>x", R"(<|user|>{"a":1})"});
  expect(R"({"type":"exclude_token","exclude_tokens":[1]})", {"a"}, {"", "<|user|>"});
}

TEST_F(StructuralTagTest, MembersAsElements) {
  const std::string schema =
      R"("json_schema":{"type":"object","properties":{"name":{"type":"string"},
         "age":{"type":"integer"},"x":{"enum":["u","v"]}},"required":["name","age"]})";
  const Texts right = {"<parameter=name>Bob</parameter><parameter=age>\t100\n</parameter>",
                       "\n<parameter=name>\nB<b\n</parameter>\n<parameter=age>1</"
                       "parameter><parameter=x>u</parameter>"};
  const Texts wrong = {"<parameter=name>Bob</parameter>", "<parameter=age>1</parameter>",
                       "<parameter=name>Bob</parameter><parameter=age>x</parameter>"};
  expect(R"({"type":"qwen_xml_parameter",)" + schema + "}", right, wrong);
  expect(R"({"type":"json_schema","style":"qwen_xml",)" + schema + "}", right, wrong);
  expect(R"({"type":"json_schema","style":"glm_xml",)" + schema + "}",
         {"<arg_key>name</arg_key><arg_value>Bob</arg_value>\n<arg_key>age</arg_key>\n"
          "<arg_value>1</arg_value>"},
         {"<arg_key>name</arg_key>"});
}

TEST_F(StructuralTagTest, SaysWhatIsWrong) {
  expect_refused("{}", "`type`");
  expect_refused(R"({"type":"json_schema","json_schema":{},"style":"cohere_xml"})", "cohere_xml");
  expect_refused(sequence(kAny + "," + object()), "that nothing ends; put it last");
  expect_refused(R"({"type":"any_text","max_tokens":5})", "use 'max_chars'");
  expect_refused(R"({"type":"token","token":"<|nope|>"})", "no token of this model");
  expect_refused(
      R"({"type":"triggered_tags","triggers":["<x"],"tags":[)" + tag("<y>", kAny, "z") + "]}",
      "no trigger");
  expect_refused(sequence(""), "no elements");
}

}  // namespace
}  // namespace foretoken
