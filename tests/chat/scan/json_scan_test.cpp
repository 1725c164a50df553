#include "chat/scan/json_scan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace foretoken {
namespace {

// Whether the text with a space behind it is one value.
bool is_value(const std::string& text) {
  JsonScan scan;
  bool done = false;
  for (const char byte : text + " ") {
    if (done) {
      if (std::string_view(" \t\r\n").find(byte) == std::string_view::npos) return false;
      continue;
    }
    const ScanOutcome outcome = scan.feed(byte);
    if (outcome == ScanOutcome::kFlaw) return false;
    done = outcome != ScanOutcome::kMore;
    if (outcome == ScanOutcome::kDoneBefore && byte != ' ' && byte != '\n') return false;
  }
  return done;
}

TEST(JsonScan, AgreesWithAParserOnRandomTexts) {
  const std::string bytes = "{}[]:,\"\"aA0123-+.eEtrufalsn\\ /\n";
  const std::vector<std::string> seeds = {R"({"a": [1, -2.5e+3, true], "b\n\u00e9": {"c": null}})",
                                          "[[], {}, \"x\"]",
                                          "-0.5",
                                          "0",
                                          "false",
                                          "{\"a\":{\"b\":[0]}}"};
  std::mt19937 generator(3);
  int num_valid = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string text = seeds[generator() % seeds.size()];
    for (size_t edits = generator() % 3; edits > 0; --edits) {
      const size_t at = generator() % text.size();
      const char byte = bytes[generator() % bytes.size()];
      if (generator() % 2 == 0) {
        text[at] = byte;
      } else {
        text.insert(at, 1, byte);
      }
    }
    // Line breaks within strings are taken here only.
    const bool broken_line = text.find('\n') != std::string::npos;
    const bool valid = nlohmann::json::accept(text);
    if (!broken_line || valid) {
      EXPECT_EQ(is_value(text), valid) << text;
    }
    num_valid += valid;
  }
  EXPECT_GT(num_valid, 5000);
}

TEST(JsonScan, NumbersEndBeforeTheNextByte) {
  JsonScan scan;
  EXPECT_EQ(scan.feed(' '), ScanOutcome::kMore);
  EXPECT_FALSE(scan.begun());
  EXPECT_EQ(scan.feed('1'), ScanOutcome::kMore);
  EXPECT_TRUE(scan.begun());
  EXPECT_EQ(scan.feed(','), ScanOutcome::kDoneBefore);
}

TEST(JsonScan, DepthIsBounded) {
  EXPECT_TRUE(is_value(std::string(256, '[') + std::string(256, ']')));
  EXPECT_FALSE(is_value(std::string(257, '[') + std::string(257, ']')));
}

TEST(JsonScan, ControlCharactersAreEscaped) {
  EXPECT_EQ(json_byte('\n', true), "\\n");
  EXPECT_EQ(json_byte('\x01', true), "\\u0001");
  EXPECT_EQ(json_byte('\n', false), "\n");
  EXPECT_EQ(json_byte('a', true), "a");
}

}  // namespace
}  // namespace foretoken
