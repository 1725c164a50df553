#include "draft/parts/method.h"

#include <gtest/gtest.h>

#include <string>

#include "draft/drafter_cases.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

TEST(Method, OfNames) {
  const char* const names[][2] = {
      {"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3"},
      {"someone/model-eagle-3", "eagle3"},
      {"yuhuili/EAGLE-LLaMA3-Instruct-8B", "eagle"},
      {"some/DeepSeek-MTP/", "mtp"},
      {"amazon/GPT-OSS-20B-P-EAGLE", "p_eagle"},
      {"a/qwen3_8b_peagle_demo", "p_eagle"},
      {"/models/eagle/llama-68m", "draft_model"},
      {"JackFram/llama-68m", "draft_model"},
      {"FasterDecoding/medusa-vicuna-7b-v1.3", "medusa"},
      {"x/mlp-speculator", "mlp_speculator"},
      {"google/gemma-4-E2B-it-assistant", "gemma4_assistant"},
      {"x/a-7b-assistant", "draft_model"},
  };
  for (const auto& [name, method] : names) EXPECT_EQ(method_of_name(name).method, method) << name;
  EXPECT_FALSE(method_of_name("a/eagle").certain);
}

TEST(Method, OfTensors) {
  for (const char* method : {"draft_model", "eagle", "eagle3", "mtp", "p_eagle"}) {
    const SpeculativeConfig config =
        DrafterCase{.name = method, .method = method, .num_modules = 1}.config(1);
    const MethodGuess guess = method_of_files(config.model);
    EXPECT_EQ(guess.method, method);
    EXPECT_TRUE(guess.certain);
  }
  const std::string heads = std::string(foretoken::kSourceFolder) + "/tests/golden/heads/";
  EXPECT_EQ(method_of_files(heads + "eagle3-speculators").method, "eagle3");
  EXPECT_EQ(method_of_files(heads + "mtp-2").method, "mtp");
  const std::string targets =
      std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/";
  EXPECT_EQ(method_of_files(targets + "qwen3_5").method, "mtp");
  EXPECT_FALSE(method_of_files(targets + "qwen3_5").certain);
  const std::string chains = std::string(foretoken::kSourceFolder) + "/tests/golden/chain_heads/";
  for (const char* name : {"medusa", "medusa-shared", "medusa-mapped"}) {
    EXPECT_EQ(method_of_files(chains + name).method, "medusa") << name;
    EXPECT_TRUE(method_of_files(chains + name).certain);
  }
  for (const char* name : {"mlp_speculator", "mlp_speculator-tied"}) {
    EXPECT_EQ(method_of_files(chains + name).method, "mlp_speculator") << name;
    EXPECT_TRUE(method_of_files(chains + name).certain);
  }
  for (const char* name : {"dense", "ordered", "unified"}) {
    const MethodGuess guess =
        method_of_files(std::string(foretoken::kSourceFolder) + "/tests/golden/assistants/" + name);
    EXPECT_EQ(guess.method, "gemma4_assistant") << name;
    EXPECT_TRUE(guess.certain);
  }
  // Whatever the first layer's mixer is.
  const std::string models = std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/";
  for (const char* name : {"lfm2", "qwen3", "mamba2"}) {
    EXPECT_EQ(method_of_files(models + name).method, "draft_model") << name;
  }
  // A target with modules can be used either way.
  DialledShape shape = dialled_target();
  shape.num_mtp_modules = 1;
  EXPECT_EQ(method_of_files(dialled_folder(shape)).method, "mtp");
  EXPECT_FALSE(method_of_files(dialled_folder(shape)).certain);
}

TEST(Method, OfConfigsAlone) {
  const ScratchFolder folder;
  const char* const configs[][2] = {
      {R"({"architectures": ["LlamaForCausalLMEagle3"]})", "eagle3"},
      {R"({"architectures": ["EagleLlamaForCausalLM"]})", "eagle"},
      {R"({"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3"})", "eagle3"},
      {R"({"architectures": ["PEagleDraftModel"]})", "p_eagle"},
      {R"({"architectures": ["PEagleDraftModel"], "speculators_model_type": "peagle"})", "p_eagle"},
      {R"({"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32000})", "eagle3"},
      {R"({"architectures": ["DeepSeekMTPModel"]})", "mtp"},
      {R"({"model_type": "qwen3_next_mtp"})", "mtp"},
      {R"({"medusa_num_heads": 3})", "medusa"},
      {R"({"architectures": ["MedusaModel"]})", "medusa"},
      {R"({"architectures": ["MLPSpeculatorPreTrainedModel"]})", "mlp_speculator"},
      {R"({"model_type": "mlp_speculator"})", "mlp_speculator"},
      {R"({"architectures": ["Gemma4AssistantForCausalLM"]})", "gemma4_assistant"},
      {R"({"model_type": "gemma4_unified_assistant"})", "gemma4_assistant"},
      {R"({"architectures": ["LlamaForCausalLM"]})", ""},
      {"not json", ""},
  };
  for (const auto& [config, method] : configs) {
    folder.write("config.json", config);
    EXPECT_EQ(method_of_files(folder.path()).method, method) << config;
    EXPECT_FALSE(method_of_files(folder.path()).certain);
  }
  EXPECT_EQ(method_of_files("/nowhere").method, "");
  EXPECT_EQ(method_of_files("").method, "");
}

}  // namespace
}  // namespace foretoken::test
