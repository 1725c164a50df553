#include "bench/samples/random_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/bundled_coder.h"

namespace foretoken::bench {
namespace {

RandomOptions lengths(int input_len, int output_len) {
  RandomOptions options;
  options.input_len = input_len;
  options.output_len = output_len;
  return options;
}

TEST(RandomSamples, IdsWithoutATokenizer) {
  const auto samples = random_samples(lengths(20, 7), 10, 1, nullptr).value();
  ASSERT_EQ(samples.size(), 10u);
  std::set<std::vector<int32_t>> different;
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.ids.size(), 20u);
    EXPECT_EQ(sample.prompt_len, 20);
    EXPECT_EQ(sample.output_len, 7);
    EXPECT_TRUE(sample.text.empty());
    for (const int32_t id : sample.ids) EXPECT_TRUE(id >= 256 && id < 1024) << id;
    different.insert(sample.ids);
  }
  EXPECT_EQ(different.size(), 10u);
}

TEST(RandomSamples, TextsHaveTheWantedNumberOfTokens) {
  const BundledCoder bundled;
  const auto samples = random_samples(lengths(64, 7), 30, 1, &bundled.coder).value();
  int num_exact = 0;
  for (const Sample& sample : samples) {
    EXPECT_TRUE(sample.ids.empty());
    EXPECT_EQ(bundled.coder.count(sample.text).value(), sample.prompt_len);
    EXPECT_NEAR(sample.prompt_len, 64, 3);
    num_exact += sample.prompt_len == 64 ? 1 : 0;
  }
  EXPECT_GE(num_exact, 25);
}

TEST(RandomSamples, LengthsFillTheirRange) {
  RandomOptions options = lengths(100, 40);
  ASSERT_TRUE(parse_range_ratio(R"({"input": 0.3, "output": 0.5})", &options).ok());
  const auto samples = random_samples(options, 2000, 1, nullptr).value();
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(),
      [](const Sample& a, const Sample& b) { return a.prompt_len < b.prompt_len; });
  EXPECT_EQ(least->prompt_len, 70);
  EXPECT_EQ(most->prompt_len, 130);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(sample.output_len >= 20 && sample.output_len <= 60);
  }
}

TEST(RandomSamples, ASharedPrefixIsShared) {
  RandomOptions options = lengths(8, 4);
  options.prefix_len = 12;
  const auto samples = random_samples(options, 5, 1, nullptr).value();
  for (const Sample& sample : samples) {
    ASSERT_EQ(sample.ids.size(), 20u);
    EXPECT_TRUE(std::equal(sample.ids.begin(), sample.ids.begin() + 12, samples[0].ids.begin()));
  }
}

TEST(RandomSamples, TheSeedDecides) {
  const BundledCoder bundled;
  const auto texts = [&](uint64_t seed) {
    std::string all;
    const auto samples = random_samples(lengths(16, 4), 5, seed, &bundled.coder).value();
    for (const Sample& sample : samples) all += sample.text + "|";
    return all;
  };
  EXPECT_EQ(texts(3), texts(3));
  EXPECT_NE(texts(3), texts(4));
}

TEST(RandomSamples, RangeRatios) {
  RandomOptions options;
  ASSERT_TRUE(parse_range_ratio("0.25", &options).ok());
  EXPECT_EQ(options.input_ratio, 0.25);
  EXPECT_EQ(options.output_ratio, 0.25);
  for (const char* text : {"1", "-0.1", "x", "", "{}", R"({"input": 0.1})", "[0.1]"}) {
    const Status status = parse_range_ratio(text, &options);
    EXPECT_NE(status.message().find("--random-range-ratio"), std::string::npos) << text;
  }
}

TEST(RandomSamples, NothingLeftIsAnError) {
  RandomOptions options = lengths(1, 4);
  options.input_ratio = 0.9;
  EXPECT_NE(random_samples(options, 1, 0, nullptr).status().message().find("--random-input-len"),
            std::string::npos);
}

TEST(PrefixSamples, EveryPrefixHasItsShare) {
  PrefixOptions options;
  options.prefix_len = 6;
  options.suffix_len = 3;
  options.num_prefixes = 4;
  options.output_len = 9;
  const auto samples = prefix_samples(options, 22, 1, nullptr, false).value();
  EXPECT_EQ(samples.size(), 20u);
  std::map<std::vector<int32_t>, int> prefixes;
  for (const Sample& sample : samples) {
    ASSERT_EQ(sample.ids.size(), 9u);
    EXPECT_EQ(sample.output_len, 9);
    ++prefixes[{sample.ids.begin(), sample.ids.begin() + 6}];
  }
  EXPECT_EQ(prefixes.size(), 4u);
  for (const auto& [prefix, count] : prefixes) EXPECT_EQ(count, 5);
  const auto in_order = prefix_samples(options, 22, 1, nullptr, true).value();
  EXPECT_TRUE(
      std::equal(in_order[0].ids.begin(), in_order[0].ids.begin() + 6, in_order[4].ids.begin()));
  EXPECT_NE(prefix_samples(options, 3, 1, nullptr, true).status().message().find("--num-prompts 3"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken::bench
