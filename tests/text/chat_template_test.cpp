#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/scratch_folder.h"
#include "text/text_fixtures.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

Result<std::string> render(const std::string& source, const std::string& messages = "[]",
                           const std::string& arguments = "", bool add_prompt = false) {
  TokenizerConfig config;
  config.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  config.chat_templates["default"] = source;
  FT_ASSIGN_OR_RETURN(const ChatTemplate compiled, ChatTemplate::compile(config, "the test"));
  return compiled.render(messages, arguments, add_prompt);
}

std::string rendered(const std::string& source, const std::string& arguments = "") {
  auto text = render(source, "[]", arguments);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? text.value() : "";
}

std::string failure(const Result<std::string>& result) {
  EXPECT_FALSE(result.ok());
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  return result.status().message();
}

TEST(ChatTemplate, RendersTheTemplateOfAFolder) {
  auto compiled = ChatTemplate::load(data_folder("byte_level"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const std::string messages =
      R"([{"role":"user","content":" Hi <b>& 你好 "},{"role":"assistant","content":"Yes"}])";
  EXPECT_EQ(compiled.value().render(messages, "", true).value(),
            "<|begin|><|role|>user\nHi <b>& 你好<|end|>\n<|role|>assistant\nYes<|end|>\n"
            "<|role|>assistant\n");
}

TEST(ChatTemplate, BlocksAreTrimmed) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(rendered("x  {{- 1 -}}  y"), "x1y");
}

TEST(ChatTemplate, LoopControlsAndPythonMethods) {
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                     "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "02");
  EXPECT_EQ(rendered("{{ ' a.b '.strip().split('.')[-1].upper() }}{{ x.get('k', 'none') }}"
                     "{{ 'abc'[1:] }}{{ 'abc'.startswith('ab') }}",
                     R"({"x":{}})"),
            "BnonebcTrue");
  EXPECT_EQ(
      rendered("{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}", R"({"x":{"z":1,"a":2}})"),
      "z=1;a=2;");
}

TEST(ChatTemplate, TojsonIsPythons) {
  const std::string arguments = R"({"x":{"b":[1,2.0,1e20,1e-5,true,null,"<é\"\n'&>"],"a":{}}})";
  EXPECT_EQ(rendered("{{ x | tojson }}", arguments),
            R"({"b": [1, 2.0, 1e+20, 1e-05, true, null, "<é\"\n'&>"], "a": {}})");
  EXPECT_EQ(rendered("{{ x | tojson(indent=2) }}", R"({"x":{"a":[1,[]],"b":{}}})"),
            "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(rendered("{{ x | tojson(sort_keys=true, separators=(',', ':')) }}",
                     R"({"x":{"b":1,"a":[1,2]}})"),
            R"({"a":[1,2],"b":1})");
  EXPECT_EQ(rendered("{{ x | tojson(ensure_ascii=true) }}", R"({"x":"é😀"})"),
            R"("\u00e9\ud83d\ude00")");
  EXPECT_EQ(rendered("{{ x | tojson }}", R"({"x":12345678901234567890})"), "12345678901234567890");
}

TEST(ChatTemplate, ValuesPrintAsInPython) {
  EXPECT_EQ(rendered("{{ x }}", R"({"x":[true,null,1.0,"it's",{"a":"b"}]})"),
            R"([True, None, 1.0, "it's", {'a': 'b'}])");
  EXPECT_EQ(rendered("{{ x }}{{ y }}{{ nothing }}", R"({"x":null,"y":false})"), "NoneFalse");
  EXPECT_EQ(rendered("{{ 'n: ' + (true | string) }}"), "n: True");
  EXPECT_EQ(rendered("{{ x | trim }}{{ '..a.' | trim('.') }}", R"({"x":["a"]})"), "['a']a");
  EXPECT_EQ(rendered("{{ none is iterable }}{{ [] is iterable }}"), "FalseTrue");
}

TEST(ChatTemplate, ToolsAndDocumentsAreAlwaysDefined) {
  const std::string source =
      "{% if tools is none %}none{% else %}{{ tools | length }}{% endif %}{{ documents is none }}";
  EXPECT_EQ(rendered(source), "noneTrue");
  EXPECT_EQ(rendered(source, R"({"tools":[{}]})"), "1True");
}

TEST(ChatTemplate, GenerationMarkersHaveNoEffect) {
  EXPECT_EQ(rendered("a {%- generation -%} b {% endgeneration %}\nc"), "ab c");
}

TEST(ChatTemplate, DateOfToday) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  EXPECT_EQ(rendered("{{ strftime_now('%Y') }}"), std::to_string(1900 + parts.tm_year));
  EXPECT_EQ(rendered("{{ strftime_now('') }}"), "");
}

TEST(ChatTemplate, ARefusalSaysTheTemplatesOwnWords) {
  const std::string message = failure(
      render("{% if messages[0]['role'] != 'user' %}{{ raise_exception('Start with user!') }}"
             "{% endif %}",
             R"([{"role":"system"}])"));
  EXPECT_NE(message.find("refuses these messages: Start with user!"), std::string::npos) << message;
}

TEST(ChatTemplate, FailuresNameThePlace) {
  EXPECT_NE(failure(render("one\n{% if %}")).find(":2)"), std::string::npos);
  EXPECT_NE(failure(render("a\n\n{{ messages[0].x.y }}", "[{}]")).find(":3)"), std::string::npos);
  EXPECT_NE(failure(render("{{ nothing | tojson }}")).find("Undefined"), std::string::npos);
  EXPECT_NE(failure(render("{{ 1 | no_such_filter }}")).find("no_such_filter"), std::string::npos);
  EXPECT_NE(failure(render("x", "{")).find("messages"), std::string::npos);
  EXPECT_NE(failure(render("x", "{}")).find("array"), std::string::npos);
  EXPECT_NE(failure(render("x", "[]", "[]")).find("arguments"), std::string::npos);
  EXPECT_NE(failure(render("x", "[\"\xff\"]")).find("UTF-8"), std::string::npos);
}

TEST(ChatTemplate, RunawayTemplatesEnd) {
  EXPECT_NE(failure(render("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}")), "");
  EXPECT_NE(failure(render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
                           "{% endfor %}")),
            "");
  EXPECT_NE(failure(render(std::string(100000, '(') + "{{" + std::string(100000, '(') + "}}")), "");
  EXPECT_NE(failure(render("x", std::string(100000, '['))), "");
}

// Every template here would use up the memory, the time or the stack of the process.
TEST(ChatTemplate, HostileTemplatesEndWithAReason) {
  const std::string memory = "memory";
  const std::string deep = "deep";
  const std::string work = "work";
  std::string doubled = "{% set x = 'abcdefgh' %}";
  for (int i = 0; i < 60; ++i) doubled += "{% set x = x + x %}";
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"{{ 'a' * 999999999999 }}", memory},
      {"{{ [1] * 999999999999 }}", memory},
      {"{{ 999999999 * (1, 2) }}", memory},
      {"{{ 'a'.center(999999999999) }}", memory},
      {"{{ 'a'.ljust(999999999999) }}", memory},
      {"{{ 'a'.zfill(999999999999) }}", memory},
      {"{{ 'a' | center(999999999999) }}", memory},
      {"{{ 'a' | indent(999999999999, true) }}", memory},
      {"{{ '\t'.expandtabs(999999999999) }}", memory},
      {"{{ '%999999999999d' % 1 }}", memory},
      {"{{ '%.999999999999f' % 1 }}", memory},
      {"{{ '{:>999999999999}'.format(1) }}", memory},
      {"{{ [1] | batch(999999999999, 0) | list }}", memory},
      {"{{ [1] | slice(999999999999) | list }}", memory},
      {"{% set x = 'a' * 9999999 %}{{ x.replace('', x) }}", memory},
      {"{% set x = 'a' * 9999999 %}{{ x.join(x) }}", memory},
      {"{% set x = 'a' * 9999999 %}{{ [1] * 999 | join(x) }}", ""},
      {"{% set x = ['a' * 9999999] * 99 %}{{ x | join }}", memory},
      {"{% set x = ['a' * 9999999] * 99 %}{{ x | tojson }}", memory},
      {"{{ ([[[1] * 999] * 999] * 999) | tojson }}", ""},
      {"{{ [[[[1]]]] | tojson(indent='a' * 99999999) }}", memory},
      {"{{ ([[[1] * 999] * 999] * 999) }}", ""},
      {"{% set n = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}"
       "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
       work},
      {"{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{{ x[i] }}{{ x | length }}"
       "{% endfor %}",
       work},
      {"{% set x = 'a ' * 49999999 %}{{ x.split() }}", memory},
      {doubled, memory},
      {"{% set n = namespace(x='abcdefgh') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
       "{% endfor %}",
       memory},
      {"{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor "
       "%}",
       memory},
      {"{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% for j in range(99999) %}"
       "{% set n.x = [n.x] %}{% endfor %}{% endfor %}",
       deep},
      {"{% set n = namespace(x={}) %}{% for i in range(99999) %}{% set n.x = {'a': n.x} %}"
       "{% endfor %}",
       deep},
      {"{% set x = 'a' * 999999 %}{% for i in range(9999) %}{{ x }}{% endfor %}", "MiB"},
      {"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", deep},
      {"{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}", deep},
      {"{{ range(999999999) }}", "Range too big"},
      {"{% for a in range(99999) %}{{ range(99999) | sum }}{% endfor %}", work},
      {"{{ 9 ** 9 ** 9 }}", "too large"},
      {"{{ 2 ** 99999999999 }}", "too large"},
      {"{{ " + std::string(100000, '-') + "1 }}", ""},
      {"{{ 1" + std::string(100000, '+') + " }}", ""},
  };
  for (const auto& [source, reason] : hostile) {
    const std::string message = failure(render(source));
    EXPECT_NE(message.find(reason), std::string::npos) << source.substr(0, 200) << "\n" << message;
  }
}

TEST(ChatTemplate, OverlongExpressionsAreRefused) {
  std::string sum = "{{ 1";
  std::string chain = "{{ x";
  std::string elifs = "{% if x %}";
  std::string nested;
  for (int i = 0; i < 100000; ++i) {
    sum += " + 1";
    chain += ".a";
    elifs += "{% elif x %}";
    nested += "{% if 1 %}";
  }
  for (const std::string& source : {sum + "}}", chain + "}}", elifs + "{% endif %}", nested}) {
    EXPECT_NE(failure(render(source)), "");
  }
  EXPECT_NE(failure(render(std::string(5 << 20, 'a'))).find("too large"), std::string::npos);
}

TEST(ChatTemplate, ABoundedTemplateLeavesNothingBehind) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(render("{% set x = 'a' * 99999999 %}{{ x * 9 }}").ok());
    EXPECT_EQ(rendered("{{ 'a' * 3 }}"), "aaa");
  }
}

TEST(ChatTemplate, LongConversationsStayWithinTheBounds) {
  nlohmann::json messages = nlohmann::json::array();
  for (int i = 0; i < 4000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
  }
  const std::string source =
      "{% set n = namespace(t='') %}{% for m in messages %}{% if loop.last %}{{ m.role }}{% endif "
      "%}"
      "<{{ m.role }}>{{ m['content'] | trim }}{% endfor %}";
  auto text = render(source, messages.dump());
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_GT(text.value().size(), 8000000u);
}

TEST(ChatTemplate, TheLastMessageCanBeContinued) {
  TokenizerConfig config;
  config.chat_templates["default"] =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</end>{% endfor %}";
  const ChatTemplate compiled = ChatTemplate::compile(config, "the test").value();
  const std::string messages =
      R"([{"role":"user","content":"Hi"},{"role":"a","content":"It is "}])";
  const ChatTemplate::Options options = {.continue_final_message = true};
  EXPECT_EQ(compiled.render(messages, "", options).value(), "<user>Hi</end><a>It is");
  EXPECT_FALSE(compiled.render("[]", "", options).ok());
  EXPECT_FALSE(compiled.render(R"([{"role":"a"}])", "", options).ok());
  config.chat_templates["default"] = "nothing";
  const ChatTemplate silent = ChatTemplate::compile(config, "the test").value();
  EXPECT_FALSE(silent.render(messages, "", options).ok());
}

TEST(ChatTemplate, AGivenTemplateReplacesTheModels) {
  test::ScratchFolder folder;
  folder.write("tokenizer_config.json", R"({"bos_token":"<s>","chat_template":"the model's"})");
  folder.write("other.jinja", "{{ bos_token }}other");
  const auto text = [&](const std::string& choice) {
    return ChatTemplate::load(folder.path(), choice).value().render("[]", "", false).value();
  };
  EXPECT_EQ(text(""), "the model's");
  EXPECT_EQ(text(folder.file("other.jinja")), "<s>other");
  EXPECT_EQ(text("{{ bos_token }}inline"), "<s>inline");
  const auto missing = ChatTemplate::load(folder.path(), "no/such.jinja");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("no/such.jinja"), std::string::npos);
  EXPECT_FALSE(ChatTemplate::load(folder.path(), "{{ broken").ok());
}

TEST(ChatTemplate, ReasoningGoesByAllItsNames) {
  for (const char* name : {"reasoning", "reasoning_content", "thinking"}) {
    const std::string messages = std::string(R"([{"role":"a",")") + name + R"(":"hm"}])";
    EXPECT_EQ(
        render("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}", messages).value(),
        "hmhm");
  }
}

TEST(ChatTemplate, ToolUseTemplateIsTakenWithTools) {
  TokenizerConfig config;
  config.chat_templates = {{"default", "plain"}, {"tool_use", "with tools"}};
  const ChatTemplate compiled = ChatTemplate::compile(config, "the test").value();
  EXPECT_EQ(compiled.render("[]", "", false).value(), "plain");
  EXPECT_EQ(compiled.render("[]", R"({"tools":null})", false).value(), "plain");
  EXPECT_EQ(compiled.render("[]", R"({"tools":[]})", false).value(), "with tools");
  EXPECT_EQ(compiled.traits(R"({"tools":[]})")->source, "with tools");
  EXPECT_EQ(compiled.traits(R"({"documents":[]})")->source, "plain");
  config.chat_templates["rag"] = "with documents";
  const ChatTemplate three = ChatTemplate::compile(config, "the test").value();
  EXPECT_EQ(three.render("[]", R"({"documents":[{}]})", false).value(), "with documents");
  EXPECT_EQ(three.render("[]", R"({"documents":[{}],"tools":[{}]})", false).value(), "with tools");
}

TEST(ChatTemplate, AFolderWithoutTemplateSaysWhatToDo) {
  test::ScratchFolder folder;
  auto compiled = ChatTemplate::load(folder.path());
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), StatusCode::kNotFound);
  EXPECT_NE(compiled.status().message().find("chat_template.jinja"), std::string::npos);
}

TEST(ChatTemplate, OneObjectServesManyThreads) {
  const ChatTemplate compiled = ChatTemplate::load(data_folder("byte_level")).value();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < texts.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        texts[t] = compiled.render(R"([{"role":"user","content":"x"}])", "", true).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts, std::vector<std::string>(4, texts[0]));
  EXPECT_FALSE(texts[0].empty());
}

}  // namespace
}  // namespace foretoken
