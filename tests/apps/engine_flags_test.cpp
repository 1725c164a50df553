#include <gtest/gtest.h>

#include <regex>
#include <type_traits>

#include "apps/command_run.h"
#include "config/engine_fields.h"
#include "config/engine_pages.h"

namespace foretoken {
namespace {

TEST(EngineFlags, EveryRowOfTheCommandLineIsAFlagWithItsHelp) {
  const CommandResult result = run_command({"generate", "--help"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // Without the line breaks of long texts.
  const std::string help = std::regex_replace(result.out, std::regex(R"(\s+)"), " ");
  for (const EngineField& field : engine_fields()) {
    const bool is_flag = help.find(engine_flag(field)) != std::string::npos;
    if ((field.doors & kCommandLine) == 0) {
      EXPECT_EQ(help.find(" " + engine_flag(field) + " "), std::string::npos) << field.name;
      continue;
    }
    EXPECT_TRUE(is_flag) << field.name;
    EXPECT_NE(help.find(std::regex_replace(field.help, std::regex(R"(\s+)"), " ")),
              std::string::npos)
        << field.name;
  }
}

TEST(EngineFlags, ValuesOutOfRangeAreRefusedByTheFlag) {
  for (const EngineField& field : engine_fields()) {
    if ((field.doors & kCommandLine) == 0 || field.form == FieldForm::kLength) continue;
    EngineConfig config;
    bool is_number = false;
    visit_engine_member(field, config, [&](auto& value) {
      using Value = std::decay_t<decltype(value)>;
      is_number = std::is_same_v<Value, int> || std::is_same_v<Value, int64_t>;
    });
    const bool bounded = is_number && field.range.low > INT32_MIN && *field.choices == '\0';
    if (!bounded) continue;
    const std::string below = std::to_string(field.range.low - 1);
    const CommandResult result =
        run_command({"generate", "--prompt", "A", engine_flag(field), below});
    EXPECT_EQ(result.exit_code, 2) << field.name;
    EXPECT_NE(result.err.find(engine_flag(field)), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(std::to_string(field.range.low)), std::string::npos) << result.err;
  }
}

TEST(EngineFlags, VllmsConnectorsToHostMemoryAreTheOffloadingSize) {
  const auto generated = [](const std::string& connector) {
    return run_command({"generate", "--model", bundled_model().string(), "--prompt", "A",
                        "--max-tokens", "1", "--cpu-threads", "1", "--kv-transfer-config",
                        connector});
  };
  const CommandResult kept = generated(
      R"({"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
          "kv_connector_extra_config": {"cpu_bytes_to_use": 16777216, "eviction_policy": "lru"}})");
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_NE(kept.err.find("KV offload: "), std::string::npos) << kept.err;
  EXPECT_NE(kept.err.find("'eviction_policy' of --kv-transfer-config has no effect"),
            std::string::npos)
      << kept.err;
  const CommandResult counted = generated(
      R"({"kv_connector": "OffloadingConnector",
          "kv_connector_extra_config": {"num_cpu_blocks": 7, "block_size": 32}})");
  EXPECT_NE(counted.err.find("KV offload: 224 tokens"), std::string::npos) << counted.err;
  EXPECT_NE(generated(R"({"kv_connector": "NixlConnector"})").err.find("not moved between servers"),
            std::string::npos);
}

TEST(EngineFlags, NumbersBeyondWhatThereIsAreTheNearest) {
  const CommandResult result =
      run_command({"generate", "--model", bundled_model().string(), "--prompt", "A", "--max-tokens",
                   "1", "--cpu-threads", "1", "--block-size", "128", "--max-num-seqs", "10240"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* line : {"--block-size 128: 64 is used, the nearest that there is",
                           "--max-num-seqs 10240: 4096 is used, the nearest that there is"}) {
    EXPECT_NE(result.err.find(line), std::string::npos) << result.err;
  }
}

TEST(EngineFlags, PagesOfTheTablesArePrinted) {
  EXPECT_EQ(run_command({"fields", "python"}).out, python_engine_fields());
  EXPECT_EQ(run_command({"fields", "docs"}).out, markdown_engine_fields());
  EXPECT_EQ(run_command({"fields", "names"}).out, markdown_engine_names());
}

}  // namespace
}  // namespace foretoken
