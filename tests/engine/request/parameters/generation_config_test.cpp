#include "engine/request/parameters/generation_config.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "config/sampling_fields.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class GenerationConfigTest : public testing::Test {
 protected:
  static EngineConfig config_in(const test::ScratchFolder& folder, const std::string& json) {
    EngineConfig config;
    const std::string file = folder.write("generation_config.json", json);
    config.model = file.substr(0, file.rfind('/'));
    return config;
  }
  static std::string message_of(const EngineConfig& config) {
    return load_generation_config(config, config.model).status().message();
  }
};

TEST_F(GenerationConfigTest, TakesWhatVllmTakes) {
  const test::ScratchFolder folder;
  const EngineConfig config = config_in(
      folder,
      R"({"temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1,
          "max_new_tokens": 64, "do_sample": false, "eos_token_id": [1, 2], "pad_token_id": null})");
  const auto loaded = load_generation_config(config, config.model);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const SamplingParams& sampling = loaded.value().sampling;
  EXPECT_FLOAT_EQ(sampling.temperature, 0.6f);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.05f);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(sampling.max_tokens, 64);
  EXPECT_FALSE(loaded.value().eos_token_ids.has_value());
}

// What the table of sampling fields says is read from there, is.
TEST_F(GenerationConfigTest, EveryRowThatNamesItIsRead) {
  const test::ScratchFolder folder;
  int count = 0;
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name == nullptr) continue;
    ++count;
    const std::string value = std::holds_alternative<int SamplingParams::*>(field.member) ? "9"
                              : field.range.holds(1.5f)                                   ? "1.5"
                                                                                          : "0.5";
    EngineConfig config =
        config_in(folder, "{\"" + std::string(field.model_name) + "\": " + value + "}");
    const auto loaded = load_generation_config(config, config.model);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(sampling_value(field, loaded.value().sampling).dump(), value) << field.name;
    config = config_in(folder, "{\"" + std::string(field.model_name) + "\": -3}");
    EXPECT_NE(message_of(config).find(field.model_name + std::string(" is -3; it must be ")),
              std::string::npos)
        << message_of(config);
  }
  EXPECT_EQ(count, 6);
}

TEST_F(GenerationConfigTest, CanBeSwitchedOffReplacedAndOverridden) {
  const test::ScratchFolder folder;
  EngineConfig config = config_in(folder, R"({"temperature": 0.6, "top_k": 20})");
  config.override_generation_config = R"({"top_k": 5, "eos_token_id": 9, "temperature": null})";
  auto loaded = load_generation_config(config, config.model);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_FLOAT_EQ(loaded.value().sampling.temperature, 0.6f);
  EXPECT_EQ(loaded.value().sampling.top_k, 5);
  EXPECT_EQ(loaded.value().eos_token_ids, (std::vector<int32_t>{9}));
  config.generation_config = "vllm";
  EXPECT_EQ(load_generation_config(config, config.model).value().sampling.temperature, 1.0f);
  std::filesystem::create_directories(folder.file("other"));
  (void)folder.write("other/generation_config.json",
                     R"({"temperature": 0.2, "eos_token_id": [3, 4]})");
  config.generation_config = folder.file("other");
  config.override_generation_config.clear();
  loaded = load_generation_config(config, config.model);
  EXPECT_FLOAT_EQ(loaded.value().sampling.temperature, 0.2f);
  EXPECT_EQ(loaded.value().eos_token_ids, (std::vector<int32_t>{3, 4}));
}

TEST_F(GenerationConfigTest, TakesIdsAsSomeToolsWriteThem) {
  const test::ScratchFolder folder;
  const auto ids_of = [&](const char* text) {
    EngineConfig config = config_in(folder, text);
    config.generation_config = folder.path();
    return load_generation_config(config, folder.path()).value().eos_token_ids.value();
  };
  EXPECT_EQ(ids_of(R"({"eos_token_id": 2.0})"), (std::vector<int32_t>{2}));
  EXPECT_EQ(ids_of(R"({"eos_token_id": [1, null]})"), (std::vector<int32_t>{1}));
}

TEST_F(GenerationConfigTest, MayBeMissingUnlessNamed) {
  EngineConfig config;
  config.model = "/nonexistent";
  EXPECT_TRUE(load_generation_config(config, config.model).ok());
  config.generation_config = "/nonexistent";
  EXPECT_EQ(load_generation_config(config, config.model).status().code(), StatusCode::kNotFound);
  EXPECT_NE(message_of(config).find("auto or vllm"), std::string::npos);
}

// One line names what changes texts and is passed over, and no field with a value that does not.
TEST_F(GenerationConfigTest, WarnsOfWhatIsPassedOver) {
  const test::ScratchFolder folder;
  const auto warnings_of = [&](const std::string& json) {
    const EngineConfig config = config_in(folder, json);
    testing::internal::CaptureStderr();
    init_logging("warn");
    EXPECT_TRUE(load_generation_config(config, config.model).ok());
    return testing::internal::GetCapturedStderr();
  };
  const std::string said = warnings_of(
      R"({"num_beams": 4, "no_repeat_ngram_size": 3, "suppress_tokens": [7, 8],
          "forced_eos_token_id": 0, "typical_p": 0.9, "top_p": 0.8, "do_sample": true})");
  EXPECT_NE(said.find("forced_eos_token_id 0, no_repeat_ngram_size 3, num_beams 4, suppress_tokens "
                      "[7,8], typical_p 0.9: passed over"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("passed over"), said.rfind("passed over"));
  EXPECT_EQ(warnings_of(R"({"num_beams": 1, "no_repeat_ngram_size": 0, "suppress_tokens": [],
                           "forced_bos_token_id": null, "typical_p": 1.0, "length_penalty": 1.0,
                           "remove_invalid_values": false, "penalty_alpha": 0.0})"),
            "");
}

TEST_F(GenerationConfigTest, NamesWhatIsWrong) {
  const test::ScratchFolder folder;
  EXPECT_NE(message_of(config_in(folder, R"({"top_p": 3})")).find("top_p is 3"), std::string::npos);
  const EngineConfig whole = config_in(folder, R"({"top_k": 50.0})");
  EXPECT_EQ(load_generation_config(whole, whole.model).value().sampling.top_k, 50);
  EXPECT_NE(message_of(config_in(folder, R"({"top_k": 1.5})")).find("'top_k' is 1.5"),
            std::string::npos);
  EXPECT_NE(message_of(config_in(folder, R"({"temperature": "hot"})")).find("\"hot\""),
            std::string::npos);
  EngineConfig config = config_in(folder, "{}");
  config.override_generation_config = R"({"max_new_tokens": 0})";
  EXPECT_NE(message_of(config).find("--override-generation-config: max_new_tokens is 0"),
            std::string::npos);
  config.override_generation_config = R"({"eos_token_id": ["x"]})";
  EXPECT_NE(message_of(config).find("eos_token_id"), std::string::npos);
  config.override_generation_config = "{";
  EXPECT_NE(message_of(config).find("not valid JSON"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
