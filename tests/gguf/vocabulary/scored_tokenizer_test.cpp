#include "gguf/vocabulary/scored_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The pieces of so many bytes.
std::string byte_lines(int count) {
  std::string lines;
  for (int byte = 0; byte < count; ++byte) {
    char line[32];
    std::snprintf(line, sizeof line, R"(["<0x%02X>", 0.0, "BYTE"])", byte);
    lines += std::string(line) + "\n";
  }
  return lines;
}

const std::string kLines = R"(["<|plamo:unk|>", 0.0, "UNKNOWN"]
["<|plamo:bos|>", 0.0, "CONTROL", null]
["<|plamo:eos|>", 0.0, "CONTROL"]
["<|plamo:op|>", 0.0, "NORMAL"]
["the cat", -3.14159, "NORMAL"]
)" + byte_lines(256);

TEST(ScoredTokenizer, ReadsLines) {
  TokenizerSettings settings;
  settings.add_bos = true;
  const auto made = scored_tokenizer(kLines, settings, "file");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Json& json = made.value().tokenizer;
  EXPECT_EQ(json["model"]["vocab"][4], Json::array({"the cat", -3.1416}));
  EXPECT_EQ(json["model"]["unk_id"], 0);
  EXPECT_EQ(json["added_tokens"].size(), 4u);
  EXPECT_TRUE(json["pre_tokenizer"].is_null());
  EXPECT_EQ(json["post_processor"]["special_tokens"].size(), 1u);
  EXPECT_EQ(made.value().config["eos_token"], "<|plamo:eos|>");
}

TEST(ScoredTokenizer, CutsRunsWhereTheFolderSaysSo) {
  TokenizerSettings settings;
  settings.break_spaces = 2;
  const auto pattern = [&] {
    const auto made = scored_tokenizer(kLines, settings, "file");
    return made.value().tokenizer["pre_tokenizer"]["pattern"]["Regex"].get<std::string>();
  };
  EXPECT_EQ(pattern(), " {2,}");
  settings.break_repeats = 8;
  EXPECT_EQ(pattern(), R"((.)\1{7,}| {2,})");
}

TEST(ScoredTokenizer, NamesLinesThatAreNone) {
  for (const char* line : {"x", "[1, 2]", R"(["a"])", R"(["a", 1, 2])"}) {
    const auto made = scored_tokenizer(std::string("[\"b\", 0.0]\n") + line, {}, "file");
    EXPECT_NE(made.status().message().find("file: line 2 is no list"), std::string::npos) << line;
  }
  EXPECT_NE(scored_tokenizer("", {}, "file").status().message().find("no tokens"),
            std::string::npos);
}

TEST(ScoredTokenizer, TextsOfBytesThatAreMissingWouldBeLost) {
  const auto made = scored_tokenizer(byte_lines(255), {}, "file");
  EXPECT_NE(made.status().message().find("pieces of 255 bytes of 256"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
