#include <filesystem>
#include <fstream>

#include "engine/dialled_engine.h"
#include "support/scratch_folder.h"

// What Engine::render_chat understands beside the messages.

namespace foretoken {
namespace {

constexpr const char* kTemplate =
    "{%- for message in messages %}<{{ message.role }}>{{ message.content }}</>{% endfor %}"
    "{%- if tools %}[{{ tools | length }} tools]{% endif %}"
    "{%- if mood %}({{ mood }}){% endif %}"
    "{%- if add_generation_prompt %}<assistant>{% endif %}";
constexpr const char* kMessages =
    R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])";

class RenderChat : public DialledEngine {
 protected:
  static std::string render(const Engine& engine, const std::string& arguments,
                            const std::string& messages = kMessages) {
    std::string prompt;
    const Status status = engine.render_chat(messages, arguments, &prompt);
    return status.ok() ? prompt : status.message();
  }
};

TEST_F(RenderChat, TakesTheTemplateOfTheConfiguration) {
  EngineConfig with_text = config(0);
  with_text.chat_template = kTemplate;
  const auto engine = make(with_text);
  const std::string turns = "<user>hi</><assistant>hello</>";
  EXPECT_EQ(render(*engine, ""), turns + "<assistant>");
  EXPECT_EQ(render(*engine, R"({"add_generation_prompt": false})"), turns);
  EXPECT_EQ(render(*engine, R"({"tools": [{}, {}], "chat_template_kwargs": {"mood": "calm"}})"),
            turns + "[2 tools](calm)<assistant>");
  // The last message stays open.
  EXPECT_EQ(render(*engine, R"({"continue_final_message": true})"), "<user>hi</><assistant>hello");
  EXPECT_NE(render(*engine, "[]").find("must be a JSON object"), std::string::npos);
}

TEST_F(RenderChat, GivesContentAsTheTemplateTakesIt) {
  EngineConfig config_of_texts = config(0);
  config_of_texts.chat_template = kTemplate;
  const std::string parts =
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])";
  EXPECT_EQ(render(*make(config_of_texts), "", parts), "<user>a\nb</><assistant>");
  EngineConfig config_of_parts = config(0);
  config_of_parts.chat_template =
      "{%- for message in messages %}{% for part in message['content'] %}({{ part.text }})"
      "{% endfor %}{% endfor %}";
  EXPECT_EQ(render(*make(config_of_parts), "", parts), "(a)(b)");
  EXPECT_EQ(render(*make(config_of_parts), ""), "(hi)(hello)");
}

TEST_F(RenderChat, TakesATemplateFile) {
  const test::ScratchFolder folder;
  EngineConfig with_file = config(0);
  with_file.chat_template = folder.write("mine.jinja", "{{ messages | length }} messages");
  EXPECT_EQ(render(*make(with_file), ""), "2 messages");
  with_file.chat_template = folder.file("missing.jinja");
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(with_file, &engine);
  EXPECT_NE(status.message().find("missing.jinja"), std::string::npos) << status.message();
}

// Plain prompts need none.
TEST_F(RenderChat, ABrokenTemplateOfTheModelRefusesMessagesAlone) {
  const test::ScratchFolder folder;
  EngineConfig broken = config(0);
  std::filesystem::copy(broken.model, folder.path());
  std::ofstream(folder.file("chat_template.jinja")) << "{{% for";
  broken.model = folder.path();
  const auto engine = make(broken);
  ASSERT_NE(engine, nullptr);
  Request request;
  request.prompt_token_ids = {5, 6, 7};
  request.sampling.max_tokens = 2;
  const auto outputs = engine->generate({request});
  EXPECT_TRUE(outputs[0].status.ok()) << outputs[0].status.message();
  const std::string refused = render(*engine, "");
  EXPECT_NE(refused.find("cannot be compiled"), std::string::npos) << refused;
  EXPECT_NE(refused.find("name another with --chat-template"), std::string::npos) << refused;
  broken.chat_template = kTemplate;
  EXPECT_EQ(render(*make(broken), ""), "<user>hi</><assistant>hello</><assistant>");
  broken.chat_template = "{{% for";
  std::unique_ptr<Engine> none;
  EXPECT_FALSE(make_engine(broken, &none).ok());
}

TEST_F(RenderChat, SaysWhereThereIsNoTemplate) {
  EngineConfig bare = config(0);
  bare.skip_tokenizer_init = true;
  EXPECT_NE(render(*make(bare), "").find("--chat-template"), std::string::npos);
}

TEST_F(RenderChat, DefaultsComeFromTheGenerationConfig) {
  EngineConfig overridden = config(0);
  overridden.override_generation_config = R"({"temperature": 0.25, "max_new_tokens": 77})";
  const SamplingParams sampling = make(overridden)->default_sampling_params();
  EXPECT_EQ(sampling.temperature, 0.25f);
  EXPECT_EQ(sampling.max_tokens, 77);
  EXPECT_EQ(sampling.top_k, 0);
}

}  // namespace
}  // namespace foretoken
