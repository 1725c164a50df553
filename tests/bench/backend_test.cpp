#include "bench/backend.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

using PlainJson = nlohmann::json;

Sample text_sample() {
  Sample sample;
  sample.text = "Hello";
  sample.output_len = 16;
  return sample;
}

Sample id_sample() {
  Sample sample;
  sample.ids = {5, 6};
  sample.output_len = 16;
  return sample;
}

Sample chat_sample() {
  Sample sample;
  sample.messages_json = R"([{"role": "system", "content": "Be brief."}])";
  sample.output_len = 16;
  return sample;
}

PlainJson body(Protocol protocol, const Sample& sample, const SharedFields& fields = {}) {
  return PlainJson::parse(request_body(protocol, "m", sample, fields).value());
}

TEST(BenchBackend, Completions) {
  const PlainJson expected = {{"model", "m"},
                              {"prompt", "Hello"},
                              {"max_tokens", 16},
                              {"stream", true},
                              {"stream_options", {{"include_usage", true}}}};
  EXPECT_EQ(body(Protocol::kCompletions, text_sample()), expected);
  EXPECT_EQ(body(Protocol::kCompletions, id_sample())["prompt"], PlainJson({5, 6}));
}

TEST(BenchBackend, Chat) {
  const PlainJson given = body(Protocol::kChat, text_sample());
  EXPECT_EQ(given["messages"], PlainJson::parse(R"([{"role": "user", "content": "Hello"}])"));
  EXPECT_EQ(given["max_completion_tokens"], 16);
  EXPECT_EQ(given["stream_options"]["include_usage"], true);
  EXPECT_EQ(body(Protocol::kChat, chat_sample())["messages"][0]["role"], "system");
}

TEST(BenchBackend, ResponsesAndEmbeddings) {
  const PlainJson responses = body(Protocol::kResponses, text_sample());
  EXPECT_EQ(responses["input"], "Hello");
  EXPECT_EQ(responses["max_output_tokens"], 16);
  EXPECT_EQ(responses["store"], false);
  EXPECT_EQ(body(Protocol::kResponses, chat_sample())["input"][0]["content"], "Be brief.");
  const PlainJson embeddings = body(Protocol::kEmbeddings, id_sample());
  EXPECT_EQ(embeddings["input"], PlainJson({5, 6}));
  EXPECT_FALSE(embeddings.contains("stream"));
}

TEST(BenchBackend, SharedFieldsAndTheLastWordOfExtra) {
  SharedFields fields;
  fields.logprobs = 3;
  fields.ignore_eos = true;
  fields.extra = {{"temperature", 0.5}, {"max_tokens", 7}};
  const PlainJson given = body(Protocol::kCompletions, text_sample(), fields);
  EXPECT_EQ(given["logprobs"], 3);
  EXPECT_EQ(given["ignore_eos"], true);
  EXPECT_EQ(given["temperature"], 0.5);
  EXPECT_EQ(given["max_tokens"], 7);
  const PlainJson chat = body(Protocol::kChat, text_sample(), fields);
  EXPECT_EQ(chat["logprobs"], true);
  EXPECT_EQ(chat["top_logprobs"], 3);
  EXPECT_FALSE(body(Protocol::kEmbeddings, text_sample(), fields).contains("ignore_eos"));
}

TEST(BenchBackend, PromptsThatAProtocolCannotCarry) {
  const auto message = [](Protocol protocol, const Sample& sample) {
    return request_body(protocol, "m", sample, {}).status().message();
  };
  EXPECT_NE(message(Protocol::kChat, id_sample()).find("--tokenizer"), std::string::npos);
  EXPECT_NE(message(Protocol::kResponses, id_sample()).find("--tokenizer"), std::string::npos);
  EXPECT_NE(message(Protocol::kCompletions, chat_sample()).find("openai-chat"), std::string::npos);
  EXPECT_NE(message(Protocol::kEmbeddings, chat_sample()).find("not messages"), std::string::npos);
}

TEST(BenchBackend, NamesAndEndpoints) {
  for (const Backend& backend : backends()) {
    EXPECT_EQ(find_backend(backend.name), &backend);
    EXPECT_TRUE(check_endpoint(backend, backend.endpoint).ok());
    EXPECT_FALSE(check_endpoint(backend, "/v1/other").ok());
    EXPECT_FALSE(check_endpoint(backend, "").ok());
  }
  EXPECT_EQ(find_backend("tgi"), nullptr);
  const Backend& completions = *find_backend("vllm");
  const Backend& chat = *find_backend("openai-chat");
  EXPECT_TRUE(check_endpoint(completions, "/api/v2/completions").ok());
  EXPECT_FALSE(check_endpoint(completions, "/v1/chat/completions").ok());
  const Status status = check_endpoint(chat, "/v1/completions");
  EXPECT_NE(status.message().find("/v1/chat/completions"), std::string::npos);
}

TEST(BenchBackend, TextThatIsNotUtf8IsSentRepaired) {
  Sample sample = text_sample();
  sample.text = "\xff!";
  EXPECT_EQ(body(Protocol::kCompletions, sample)["prompt"], "\xEF\xBF\xBD!");
}

}  // namespace
}  // namespace foretoken::bench
