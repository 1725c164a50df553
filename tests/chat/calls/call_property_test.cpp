// What holds for every parser of calls, whatever its text becomes.

#include <algorithm>
#include <cstdint>

#include "chat/calls/call_samples.h"
#include "chat/chat_cases.h"
#include "support/short_run.h"

namespace foretoken {
namespace {

// Whole characters: the parsers get no halves.
std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> characters;
  for (const char byte : text) {
    const bool goes_on = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    if (goes_on) characters.back() += byte;
    if (!goes_on) characters.emplace_back(1, byte);
  }
  return characters;
}

// Where characters begin, and the end.
std::vector<size_t> cuts_of(const std::string& text) {
  std::vector<size_t> cuts = {0};
  for (const std::string& character : characters_of(text)) {
    cuts.push_back(cuts.back() + character.size());
  }
  return cuts;
}

// Characters between two cuts: what a cut leaves to the next piece is the beginning of a marker or
// of a value, so that a short run takes pieces a little longer than these.
size_t max_gap() {
  constexpr size_t kLongerThanMarkers = 32;
  return test::is_short_run() ? kLongerThanMarkers : SIZE_MAX / 2;
}

std::string joined(const std::vector<std::string>& parts, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += parts[i];
  return text;
}

void expect_objects(const ChatSum& sum, const std::string& what) {
  for (const auto& [name, arguments] : sum.calls) {
    EXPECT_FALSE(name.empty()) << what;
    EXPECT_TRUE(nlohmann::json::parse(arguments, nullptr, false).is_object())
        << name << " '" << arguments << "' of " << what;
  }
}

void expect_no_markers(const ChatSum& sum, const CallSample& sample, const std::string& what) {
  for (const std::string& marker : sample.markers) {
    EXPECT_EQ(sum.content.find(marker), std::string::npos) << sum << " of " << what;
  }
}

class CallProperty : public ::testing::TestWithParam<CallSample> {
 protected:
  const CallSample& sample() const { return GetParam(); }
  ChatParserOptions options() const { return options_of(sample().parser); }
};

TEST_P(CallProperty, FindsItsCalls) {
  const ChatSum sum = parse_pieces(options(), {sample().text});
  ASSERT_FALSE(sum.calls.empty());
  EXPECT_EQ(sum.calls[0].first, "get_weather");
  const auto arguments = nlohmann::json::parse(sum.calls[0].second);
  EXPECT_EQ(arguments["city"].get<std::string>().substr(0, 2), "Pa");
  EXPECT_TRUE(sum.content.empty() || sum.content.starts_with("Hm.")) << sum.content;
  EXPECT_LE(sum.content.size(), 4u) << sum.content;
}

TEST_P(CallProperty, EveryPairOfCutsIsTheWhole) {
  const std::string& text = sample().text;
  const std::vector<size_t> cuts = cuts_of(text);
  const ChatParserOptions given = options();
  const ChatSum whole = parse_pieces(given, {text});
  for (size_t first = 0; first < cuts.size(); ++first) {
    const size_t end = std::min(cuts.size(), first + max_gap());
    for (size_t second = first; second < end; ++second) {
      const size_t begin = cuts[first];
      const size_t length = cuts[second] - begin;
      const ChatSum sum = parse_pieces(
          given, {text.substr(0, begin), text.substr(begin, length), text.substr(begin + length)});
      ASSERT_EQ(sum, whole) << "cuts at " << begin << " and " << begin + length;
    }
  }
}

TEST_P(CallProperty, EveryBeginningIsValidAndLeaksNothing) {
  const std::vector<std::string> all = characters_of(sample().text);
  for (size_t size = 0; size <= all.size(); ++size) {
    const std::string text = joined(all, 0, size);
    const ChatSum sum = parse_pieces(options(), {text});
    expect_objects(sum, text);
    expect_no_markers(sum, sample(), text);
  }
}

TEST_P(CallProperty, MutationsAreValidAndStreamAsTheWhole) {
  std::mt19937 generator(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> all = characters_of(sample().text);
    const size_t num_changes = 1 + generator() % 4;
    for (size_t i = 0; i < num_changes; ++i) {
      const size_t at = generator() % all.size();
      const size_t length = std::min<size_t>(1 + generator() % 12, all.size() - at);
      const std::vector<std::string> part(all.begin() + at, all.begin() + at + length);
      const bool removes = generator() % 2 == 0 && all.size() > length;
      if (removes) all.erase(all.begin() + at, all.begin() + at + length);
      if (!removes) all.insert(all.begin() + generator() % all.size(), part.begin(), part.end());
    }
    const std::string text = joined(all, 0, all.size());
    const ChatSum whole = parse_pieces(options(), {text});
    expect_objects(whole, text);
    EXPECT_EQ(parse_pieces(options(), all), whole) << text;
    const size_t cut = generator() % (all.size() + 1);
    EXPECT_EQ(parse_pieces(options(), {joined(all, 0, cut), joined(all, cut, all.size())}), whole)
        << text;
  }
}

std::string name_of(const ::testing::TestParamInfo<CallSample>& info) {
  std::string name = info.param.parser + "_" + std::to_string(info.index);
  for (char& byte : name) byte = byte == '-' ? '_' : byte;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samples, CallProperty, ::testing::ValuesIn(call_samples()), name_of);

TEST(CallSamples, EveryParserHasOne) {
  for (const std::string& name : tool_parser_names()) {
    bool found = false;
    for (const CallSample& sample : call_samples()) {
      const ChatSum sum = parse_pieces(options_of(name), {sample.text});
      found = found || (!sum.calls.empty() && sum.calls[0].first == "get_weather");
    }
    EXPECT_TRUE(found) << name;
  }
}

}  // namespace
}  // namespace foretoken
