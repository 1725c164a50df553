#include "bench/samples/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/bundled_coder.h"

namespace foretoken::bench {
namespace {

DatasetSpec spec_of(const std::string& name, int num_prompts) {
  DatasetSpec spec;
  spec.name = name;
  spec.path = "file";
  spec.num_prompts = num_prompts;
  return spec;
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "{\"prompt\": \"Tell story " + std::to_string(i) + "\"}\n";
  return text;
}

std::vector<std::string> texts_of(const std::vector<Sample>& samples) {
  std::vector<std::string> texts;
  for (const Sample& sample : samples) texts.push_back(sample.text);
  return texts;
}

TEST(Dataset, AShortFileIsRepeatedAndALongOneIsCut) {
  DatasetSpec spec = spec_of("custom", 7);
  const auto samples = make_samples(spec, lines(3), nullptr).value();
  ASSERT_EQ(samples.size(), 7u);
  EXPECT_EQ(samples[0].text, samples[3].text);
  EXPECT_EQ(samples[2].text, samples[5].text);
  EXPECT_EQ(samples[0].output_len, 256);
  spec.no_oversample = true;
  EXPECT_EQ(make_samples(spec, lines(3), nullptr).value().size(), 3u);
  EXPECT_EQ(make_samples(spec, lines(30), nullptr).value().size(), 7u);
}

TEST(Dataset, TheOrderIsShuffledByTheSeed) {
  DatasetSpec spec = spec_of("custom", 20);
  const auto first = texts_of(make_samples(spec, lines(20), nullptr).value());
  EXPECT_EQ(texts_of(make_samples(spec, lines(20), nullptr).value()), first);
  spec.seed = 1;
  EXPECT_NE(texts_of(make_samples(spec, lines(20), nullptr).value()), first);
  spec.disable_shuffle = true;
  const auto kept = texts_of(make_samples(spec, lines(20), nullptr).value());
  EXPECT_EQ(kept[0], "Tell story 0");
  EXPECT_EQ(kept[19], "Tell story 19");
}

TEST(Dataset, OutputLengthsOfCustomFiles) {
  const std::string text = "{\"prompt\": \"a\", \"output_tokens\": 12}\n{\"prompt\": \"b\"}";
  DatasetSpec spec = spec_of("custom", 2);
  spec.disable_shuffle = true;
  const auto own = make_samples(spec, text, nullptr).value();
  EXPECT_EQ(own[0].output_len, 12);
  EXPECT_EQ(own[1].output_len, 256);
  spec.custom_output_len = 5;
  EXPECT_EQ(make_samples(spec, text, nullptr).value()[0].output_len, 5);
  spec.custom_output_len = -1;
  EXPECT_NE(make_samples(spec, text, nullptr).status().message().find("\"output_tokens\""),
            std::string::npos);
}

TEST(Dataset, ChatTemplates) {
  const BundledCoder bundled;
  DatasetSpec spec = spec_of("custom", 1);
  const std::string text = "{\"prompt\": \"Hi\"}";
  const Sample rendered = make_samples(spec, text, &bundled.coder).value()[0];
  EXPECT_EQ(rendered.text, "<user>Hi");
  EXPECT_EQ(rendered.prompt_len, bundled.coder.count("<user>Hi").value());
  spec.skip_chat_template = true;
  EXPECT_EQ(make_samples(spec, text, &bundled.coder).value()[0].text, "Hi");
  spec.keeps_messages = true;
  const Sample kept = make_samples(spec, text, &bundled.coder).value()[0];
  EXPECT_EQ(kept.messages_json, R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(kept.text, "");
  EXPECT_GT(kept.prompt_len, 0);
}

TEST(Dataset, MessagesNeedAChatOrATemplate) {
  const BundledCoder bundled;
  const std::string text = R"({"messages": [{"role": "system", "content": "Be brief"}]})";
  DatasetSpec spec = spec_of("custom", 1);
  EXPECT_EQ(make_samples(spec, text, &bundled.coder).value()[0].text, "<system>Be brief");
  EXPECT_NE(make_samples(spec, text, nullptr).status().message().find("openai-chat"),
            std::string::npos);
  spec.keeps_messages = true;
  EXPECT_NE(make_samples(spec, text, nullptr).value()[0].messages_json.find("Be brief"),
            std::string::npos);
}

TEST(Dataset, ShareGptTakesTheLengthOfTheAnswer) {
  const BundledCoder bundled;
  const std::string good = R"({"conversations": [{"value": "Once upon a time there was a girl"},
                              {"value": "She had a red ball and a dog"}]})";
  const std::string brief = R"({"conversations": [{"value": "a"}, {"value": "b"}]})";
  DatasetSpec spec = spec_of("sharegpt", 2);
  const auto samples = make_samples(spec, "[" + brief + "," + good + "]", &bundled.coder).value();
  ASSERT_EQ(samples.size(), 2u);
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.text, "Once upon a time there was a girl") << "too short ones are left out";
    EXPECT_EQ(sample.output_len, bundled.coder.count("She had a red ball and a dog").value());
  }
  EXPECT_NE(make_samples(spec, "[" + good + "]", nullptr)
                .status()
                .message()
                .find("--sharegpt-output-len"),
            std::string::npos);
  spec.sharegpt_output_len = 33;
  EXPECT_EQ(make_samples(spec, "[" + good + "]", nullptr).value()[0].output_len, 33);
  EXPECT_NE(make_samples(spec, "[" + brief + "]", &bundled.coder)
                .status()
                .message()
                .find("no entry has 4 to 1024"),
            std::string::npos);
}

TEST(Dataset, SpecBench) {
  DatasetSpec spec = spec_of("spec_bench", 3);
  spec.spec_bench_output_len = 44;
  spec.spec_bench_category = "rag";
  const auto samples =
      make_samples(spec, R"({"category": "rag", "turns": ["q1", "q2"]})", nullptr).value();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[2].text, "q1");
  EXPECT_EQ(samples[2].output_len, 44);
}

TEST(Dataset, SonnetsShareTheirFirstLines) {
  const BundledCoder bundled;
  std::string poem;
  for (int i = 0; i < 60; ++i) {
    poem += "Shall I compare thee to line " + std::to_string(i) + " of summer\n";
  }
  SonnetOptions options;
  options.input_len = 300;
  options.prefix_len = 120;
  const auto samples = sonnet_samples(options, 6, 0, poem, bundled.coder).value();
  std::set<std::string> different;
  for (const Sample& sample : samples) {
    EXPECT_NEAR(sample.prompt_len, 300, 40);
    EXPECT_EQ(sample.output_len, 150);
    different.insert(sample.text);
    EXPECT_NE(sample.text.find("line 0 of summer\nShall I compare thee to line 1 "),
              std::string::npos);
  }
  EXPECT_EQ(different.size(), 6u);
  options.input_len = 3;
  EXPECT_NE(sonnet_samples(options, 1, 0, poem, bundled.coder)
                .status()
                .message()
                .find("--sonnet-input-len"),
            std::string::npos);
  EXPECT_FALSE(sonnet_samples(options, 1, 0, "\n", bundled.coder).ok());
  EXPECT_NE(
      make_samples(spec_of("sonnet", 1), poem, nullptr).status().message().find("--tokenizer"),
      std::string::npos);
}

TEST(Dataset, EveryNameWorks) {
  const BundledCoder bundled;
  const std::vector<std::pair<std::string, std::string>> files = {
      {"sharegpt",
       R"([{"conversations": [{"value": "Once upon a time there was"}, {"value": "a very big red dog"}]}])"},
      {"custom", lines(2)},
      {"prompts", lines(2)},
      {"sonnet", "A line of a poem that is long enough\n"},
      {"spec_bench", R"({"category": "rag", "turns": ["q"]})"}};
  for (const std::string& name : dataset_names()) {
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const auto& entry) { return entry.first == name; });
    EXPECT_EQ(file != files.end(), reads_file(name)) << name;
    const auto samples =
        make_samples(spec_of(name, 20), file == files.end() ? "" : file->second, &bundled.coder);
    ASSERT_TRUE(samples.ok()) << name << ": " << samples.status().message();
    EXPECT_EQ(samples.value().size(), 20u) << name;
  }
}

}  // namespace
}  // namespace foretoken::bench
