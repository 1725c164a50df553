#include "chat/template_formats.h"
#include "support/folders.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace foretoken {
namespace {

std::string formats_of(const std::string& name) {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/tests/text/data/chat_templates/" +
                     name + ".jinja");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  const ChatFormats formats = formats_of_template(text.str());
  return formats.tool_parser + " " + formats.reasoning_parser;
}

TEST(TemplateFormats, OfMarkersAlone) {
  EXPECT_EQ(formats_of_template("<mm:think> </mm:think> ]<]minimax[>[").reasoning_parser,
            "minimax_m3");
  EXPECT_EQ(formats_of_template("<think:x> <tool_calls:x> <arg_key:x>").tool_parser, "hy_v4");
  EXPECT_EQ(formats_of_template("<think:x> <tool_calls:x> <arg_key:x>").reasoning_parser, "hy_v4");
  EXPECT_EQ(formats_of_template("<ifm|think> <ifm|tool_calls>").tool_parser, "k2_horizon");
  EXPECT_EQ(formats_of_template("<ifm|think> <ifm|tool_calls>").reasoning_parser, "k2_horizon");
  EXPECT_EQ(formats_of_template("<｜DSML｜ invoke name=").tool_parser, "deepseek_v41");
  EXPECT_EQ(formats_of_template("<dots_function_call>").tool_parser, "dots");
  EXPECT_EQ(formats_of_template("List of tools: <|tool_list_start|>[").tool_parser, "lfm2");
  EXPECT_EQ(formats_of_template("<|im_start|>system List of tools: [").tool_parser, "lfm2");
  EXPECT_EQ(formats_of_template("role_sep='<|role_sep|>' sep='<|message_sep|>' function call's")
                .tool_parser,
            "gigachat3");
  EXPECT_EQ(
      formats_of_template("Here are my reasoning steps: [BEGIN FINAL RESPONSE]").reasoning_parser,
      "apriel");
}

TEST(TemplateFormats, OfPublishedTemplates) {
  EXPECT_EQ(formats_of("Qwen-Qwen2.5-7B-Instruct"), "hermes ");
  EXPECT_EQ(formats_of("Qwen-Qwen3-0.6B"), "hermes qwen3");
  EXPECT_EQ(formats_of("Qwen3-Coder"), "qwen3_coder ");
  EXPECT_EQ(formats_of("NousResearch-Hermes-3-Llama-3.1-8B-tool_use"), "hermes ");
  EXPECT_EQ(formats_of("openai-gpt-oss-120b"), "openai openai_gptoss");
  EXPECT_EQ(formats_of("GLM-4.6"), "glm45 qwen3");
  EXPECT_EQ(formats_of("Kimi-K2-Instruct"), "kimi_k2 ");
  EXPECT_EQ(formats_of("deepseek-ai-DeepSeek-V3.1"), "deepseek_v3 qwen3");
  EXPECT_EQ(formats_of("deepseek-ai-DeepSeek-V3.2"), "deepseek_v32 qwen3");
  EXPECT_EQ(formats_of("meta-llama-Llama-3.1-8B-Instruct"), "llama3_json ");
  EXPECT_EQ(formats_of("mistralai-Mistral-Nemo-Instruct-2407"), "mistral ");
  EXPECT_EQ(formats_of("mistralai-Ministral-3-14B-Reasoning-2512"), "mistral mistral");
  EXPECT_EQ(formats_of("google-gemma-2-2b-it"), "generic ");
  EXPECT_EQ(formats_of("simple/chatml"), "generic ");
}

}  // namespace
}  // namespace foretoken
