#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace foretoken {
namespace {

struct Outcome {
  std::string text;
  std::optional<size_t> matched;
};

// Sends `pieces` and then the end of the stream.
Outcome run(const std::vector<std::string>& stops, bool include,
            const std::vector<std::string>& pieces) {
  StopStrings matcher = StopStrings::create(stops, include).value();
  Outcome outcome;
  for (const std::string& piece : pieces) {
    StopStrings::Output output = matcher.append(piece);
    outcome.text += output.text;
    if (output.matched) outcome.matched = output.matched;
    EXPECT_EQ(matcher.stopped(), outcome.matched.has_value());
  }
  outcome.text += matcher.flush();
  return outcome;
}

// The definition: the match that ends first, of those the longest.
Outcome expected(const std::vector<std::string>& stops, bool include, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, include ? end : end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopStrings, FindsAStopAtEverySplit) {
  const std::vector<std::string> stops = {"\n\nUser:", "<|end|>", "😀"};
  for (const std::string& text : {std::string("Hi there\n\nUser: more"), std::string("a<|end|>b"),
                                  std::string("x😀y"), std::string("no stop\n\nUse<|end")}) {
    for (const bool include : {false, true}) {
      const Outcome want = expected(stops, include, text);
      for (size_t i = 0; i <= text.size(); ++i) {
        for (size_t j = i; j <= text.size(); ++j) {
          const Outcome got =
              run(stops, include, {text.substr(0, i), text.substr(i, j - i), text.substr(j)});
          EXPECT_EQ(got.text, want.text);
          EXPECT_EQ(got.matched, want.matched);
        }
      }
    }
  }
}

TEST(StopStrings, RandomTextInRandomPieces) {
  std::mt19937 rng(5);
  const auto random_string = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + rng() % 2);
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::string> stops;
    for (unsigned k = rng() % 4; k > 0; --k) stops.push_back(random_string(1 + rng() % 6));
    const std::string text = random_string(rng() % 30);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = rng() % 4;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    const bool include = rng() % 2 == 0;
    const Outcome got = run(stops, include, pieces);
    const Outcome want = expected(stops, include, text);
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.matched, want.matched);
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings matcher = StopStrings::create({"END"}, false).value();
  EXPECT_EQ(matcher.append("the E").text, "the ");
  EXPECT_EQ(matcher.append("N").text, "");
  EXPECT_EQ(matcher.append("E").text, "EN");
  EXPECT_EQ(matcher.append("x").text, "Ex");
  EXPECT_EQ(matcher.append("EN").text, "");
  EXPECT_EQ(matcher.flush(), "EN");
  EXPECT_EQ(matcher.append("D").text, "D");
}

TEST(StopStrings, NothingComesAfterAMatch) {
  StopStrings matcher = StopStrings::create({"a", "b"}, true).value();
  const StopStrings::Output output = matcher.append("xbya");
  EXPECT_EQ(output.text, "xb");
  EXPECT_EQ(output.matched, 1u);
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.append("more").text, "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopStrings, WithoutStopsEverythingPasses) {
  StopStrings matcher = StopStrings::create({}, false).value();
  EXPECT_EQ(matcher.append("text").text, "text");
  EXPECT_EQ(matcher.flush(), "");
}

// Every cut of `text` in three: what is shown, and whether a stop string ended it.
void expect_at_every_split(const ReasoningMarkers& reasoning, const std::string& text,
                           const std::string& shown, bool stops) {
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      StopStrings matcher = StopStrings::create({"STOP"}, false, reasoning).value();
      std::string got;
      for (const std::string& piece : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) {
        got += matcher.append(piece).text;
      }
      got += matcher.flush();
      EXPECT_EQ(got, shown) << text << " " << i << " " << j;
      EXPECT_EQ(matcher.stopped(), stops) << text;
    }
  }
}

TEST(StopStrings, NoneInReasoning) {
  const ReasoningMarkers marked = {{"<t>"}, {"</t>", "CALL"}, false};
  expect_at_every_split(marked, "<t>a STOP b</t>c STOP d", "<t>a STOP b</t>c ", true);
  expect_at_every_split(marked, " \n<t>STOP</t>STOP", " \n<t>STOP</t>", true);
  expect_at_every_split(marked, "<t>STOP CALL STOP", "<t>STOP CALL ", true);
  expect_at_every_split(marked, "<t>STOP", "<t>STOP", false);
  expect_at_every_split(marked, "c STOP <t>", "c ", true);
  expect_at_every_split(marked, "<tSTOP", "<t", true);
  expect_at_every_split(marked, " <t", " <t", false);
  const ReasoningMarkers opened = {{"<t>"}, {"</t>"}, true};
  expect_at_every_split(opened, "a STOP</t>b STOP", "a STOP</t>b ", true);
  expect_at_every_split({{"<t>"}, {}, true}, "a STOP", "a ", true);
}

TEST(StopStrings, WhereNoneCountsYetReasoningBeginsAndEnds) {
  StopStrings matcher = StopStrings::create({"STOP"}, false, {{"<t>"}, {"</t>"}, false}).value();
  EXPECT_EQ(matcher.append("<", false).text, "");
  EXPECT_EQ(matcher.append("t>STOP</t>STOP", false).text, "<t>STOP</t>STOP");
  EXPECT_EQ(matcher.append("STOP").matched, 0U);
}

TEST(StopStrings, AnEmptyStopIsAnError) {
  auto matcher = StopStrings::create({"a", ""}, false);
  ASSERT_FALSE(matcher.ok());
  EXPECT_EQ(matcher.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretoken
