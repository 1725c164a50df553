#include "text/chat_traits.h"

#include <gtest/gtest.h>

#include "base/files/text_file.h"
#include "text/chat_template.h"
#include "text/text_fixtures.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

ChatTemplateTraits traits_of(const std::string& source) {
  TokenizerConfig config;
  config.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  config.chat_templates["default"] = source;
  const auto compiled = ChatTemplate::compile(config, "the test");
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return *compiled.value().traits("");
}

ChatTemplateTraits traits_of_released(const std::string& name) {
  return traits_of(read_text_file(data_folder("chat_templates") / (name + ".jinja")).value());
}

TEST(ChatTraits, APlainTemplateShowsTextsAndNoTools) {
  const ChatTemplateTraits traits =
      traits_of("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  EXPECT_TRUE(traits.renders);
  EXPECT_FALSE(traits.shows_tools);
  EXPECT_FALSE(traits.shows_tool_calls);
  EXPECT_TRUE(traits.shows_tool_results);
  EXPECT_TRUE(traits.shows_system && traits.shows_developer && traits.shows_several_systems);
  EXPECT_TRUE(traits.shows_late_system && traits.shows_repeated_roles);
  EXPECT_TRUE(traits.user_content.text);
  EXPECT_FALSE(traits.user_content.parts);
  EXPECT_EQ(traits.source.substr(0, 6), "{% for");
}

TEST(ChatTraits, NothingIsSaidOfATemplateThatShowsNoQuestion) {
  EXPECT_FALSE(traits_of("{{ raise_exception('never') }}").renders);
  EXPECT_FALSE(traits_of("nothing").renders);
}

TEST(ChatTraits, PartsOfUsersOnly) {
  const ChatTemplateTraits traits = traits_of(
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'user' %}{% for part in m.content %}"
      "{{ part.text }}{% endfor %}{% else %}{{ m.content | trim }}{% endif %}{% endfor %}");
  EXPECT_TRUE(traits.user_content.parts);
  EXPECT_FALSE(traits.user_content.text);
  EXPECT_TRUE(traits.system_content.text);
  EXPECT_FALSE(traits.system_content.parts);
}

TEST(ChatTraits, FormsOfArguments) {
  const auto with = [](const std::string& shown) {
    return traits_of(
        "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}" + shown +
        "{% endfor %}{% endfor %}");
  };
  const ChatTemplateTraits printed = with("{{ c.function.arguments | tojson }}");
  EXPECT_TRUE(printed.object_arguments);
  EXPECT_FALSE(printed.string_arguments);
  const ChatTemplateTraits joined = with("{{ 'x' + c.function.arguments }}");
  EXPECT_FALSE(joined.object_arguments);
  EXPECT_TRUE(joined.string_arguments);
  // An object would come out as Python prints it.
  const ChatTemplateTraits bare = with("{{ c.function.arguments }}");
  EXPECT_FALSE(bare.object_arguments);
  EXPECT_TRUE(bare.string_arguments);
  const ChatTemplateTraits walked =
      with("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}");
  EXPECT_TRUE(walked.object_arguments);
  EXPECT_FALSE(walked.string_arguments);
}

TEST(ChatTraits, ContentBesideCalls) {
  const auto with = [](const std::string& shown) {
    return traits_of("{% for m in messages %}" + shown +
                     "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}"
                     "{% endfor %}{% endfor %}");
  };
  const ChatTemplateTraits printed = with("{{ m.content }}");
  EXPECT_FALSE(printed.null_content);
  EXPECT_TRUE(printed.absent_content && printed.empty_content);
  const ChatTemplateTraits joined = with("{{ '' + m.content }}");
  EXPECT_FALSE(joined.null_content || joined.absent_content);
  const ChatTemplateTraits tested =
      with("{% if m.content is not none %}{{ m.content }}{% endif %}");
  EXPECT_TRUE(tested.null_content);
}

TEST(ChatTraits, ReleasedTemplates) {
  const ChatTemplateTraits qwen = traits_of_released("Qwen3.5-4B");
  EXPECT_TRUE(qwen.shows_tools && qwen.shows_tool_calls && qwen.shows_parallel_tool_calls);
  EXPECT_TRUE(qwen.shows_tool_results && qwen.object_arguments && qwen.shows_system);
  EXPECT_FALSE(qwen.shows_several_systems);
  EXPECT_FALSE(qwen.shows_late_system);
  EXPECT_FALSE(qwen.shows_developer);
  const ChatTemplateTraits gemma = traits_of_released("google-gemma-2-2b-it");
  EXPECT_FALSE(gemma.shows_system);
  EXPECT_FALSE(gemma.shows_tools);
  EXPECT_FALSE(gemma.shows_repeated_roles);
  const ChatTemplateTraits nemo = traits_of_released("mistralai-Mistral-Nemo-Instruct-2407");
  EXPECT_FALSE(nemo.any_tool_call_id);
  EXPECT_TRUE(nemo.needs_tool_call_ids);
  EXPECT_FALSE(traits_of_released("meta-llama-Llama-3.2-3B-Instruct").shows_parallel_tool_calls);
  EXPECT_TRUE(traits_of_released("openai-gpt-oss-120b").shows_developer);
}

TEST(ChatTraits, NamesThatOnlyIdsShow) {
  const std::string shown =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c['id'] }}"
      "{{ c.function.arguments | tojson }}";
  EXPECT_TRUE(traits_of(shown + "{% endfor %}{% endfor %}").names_calls_by_id);
  EXPECT_FALSE(
      traits_of(shown + "{{ c.function.name }}{% endfor %}{% endfor %}").names_calls_by_id);
  EXPECT_FALSE(traits_of_released("Qwen3.5-4B").names_calls_by_id);
}

TEST(ChatTraits, ToolsThatMustBeThereOrMustNot) {
  const std::string shown = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const ChatTemplateTraits needs = traits_of(shown + "{% for t in tools %}{{ t }}{% endfor %}");
  EXPECT_FALSE(needs.takes_no_tools);
  EXPECT_TRUE(needs.renders && needs.takes_tools && needs.shows_tools && needs.shows_system);
  const ChatTemplateTraits refuses =
      traits_of(shown + "{% if tools %}{{ raise_exception('no tools') }}{% endif %}");
  EXPECT_TRUE(refuses.takes_no_tools);
  EXPECT_FALSE(refuses.takes_tools || refuses.shows_tools);
  EXPECT_TRUE(refuses.shows_tool_results);
  EXPECT_TRUE(traits_of(shown).takes_tools);
}

TEST(ChatTraits, AnswersWithoutWords) {
  const auto with = [](const std::string& shown) {
    return traits_of("{% for m in messages %}" + shown + "{{ m.content }}{% endfor %}");
  };
  EXPECT_TRUE(with("").takes_empty_answers);
  EXPECT_FALSE(with("{% if m.content == '' %}{{ raise_exception('empty') }}{% endif %}")
                   .takes_empty_answers);
}

}  // namespace
}  // namespace foretoken
