#include "engine/start/load_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LoadFormat, NamesThatMeanSomething) {
  EXPECT_EQ(choose_load_format("auto", "folder").value().format, LoadFormat::kAuto);
  EXPECT_EQ(choose_load_format("safetensors", "folder").value().format, LoadFormat::kAuto);
  const LoadChoice plain = choose_load_format("dummy", "folder").value();
  EXPECT_EQ(plain.format, LoadFormat::kDummy);
  EXPECT_EQ(plain.recipe, nullptr);
  const LoadChoice quantised = choose_load_format("dummy-q4_k_m", "folder").value();
  EXPECT_EQ(quantised.format, LoadFormat::kDummy);
  ASSERT_NE(quantised.recipe, nullptr);
  EXPECT_EQ(quantised.recipe->name, "q4_k_m");
  EXPECT_TRUE(is_dummy("dummy"));
  EXPECT_TRUE(is_dummy("dummy-q8_0"));
  EXPECT_FALSE(is_dummy("auto"));
}

TEST(LoadFormat, WaysToReadTheSameFilesAreTakenAsAuto) {
  for (const char* name : {"pt", "fastsafetensors", "instanttensor", "runai_streamer"}) {
    EXPECT_EQ(choose_load_format(name, "folder").value().format, LoadFormat::kAuto) << name;
  }
}

TEST(LoadFormat, OthersSayWhatThereIs) {
  for (const char* name : {"tape", "dummy-", "dummy-q9_k", "dummy-bf16", "dummyq8_0"}) {
    const Result<LoadChoice> choice = choose_load_format(name, "folder");
    ASSERT_FALSE(choice.ok()) << name;
    EXPECT_EQ(choice.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(choice.status().message().find("dummy-q8_0, dummy-q4_0"), std::string::npos);
  }
}

TEST(LoadFormat, ActivationsAreRoundedWhereAskedFor) {
  EngineConfig config;
  EXPECT_FALSE(rounds_activations(config));
  for (const char* scheme : {"dynamic", "static"}) {
    config.activation_scheme = scheme;
    EXPECT_TRUE(rounds_activations(config));
  }
}

TEST(LoadFormat, GgufIsForItsFiles) {
  for (const char* name : {"auto", "gguf", "dummy"}) {
    EXPECT_TRUE(choose_load_format(name, "a/x.gguf").ok()) << name;
  }
  EXPECT_EQ(choose_load_format("gguf", "a/x.gguf").value().format, LoadFormat::kAuto);
  const std::string folder = choose_load_format("gguf", "org/name").status().message();
  for (const char* said : {"--load-format gguf", "'org/name'", "--load-format auto"}) {
    EXPECT_NE(folder.find(said), std::string::npos) << folder;
  }
  const std::string file = choose_load_format("safetensors", "a/x.gguf").status().message();
  for (const char* said : {"--load-format safetensors", "'a/x.gguf'", "use auto or gguf"}) {
    EXPECT_NE(file.find(said), std::string::npos) << file;
  }
}

}  // namespace
}  // namespace foretoken
