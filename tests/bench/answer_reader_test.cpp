#include "bench/answer_reader.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

using std::chrono::milliseconds;
using Time = AnswerReader::Time;

const Time kStart = Time() + std::chrono::hours(1);
const net::Headers kStream = {{"Content-Type", "text/event-stream; charset=utf-8"}};
const net::Headers kJson = {{"Content-Type", "application/json"}};

// Bytes and the ms since the start at which they come.
using Pieces = std::vector<std::pair<int, std::string>>;

std::string event(const std::string& data) { return "data: " + data + "\n\n"; }
std::string text(const std::string& words, const std::string& finish = "null") {
  return event(R"({"choices":[{"text":")" + words + R"(","finish_reason":)" + finish + "}]}");
}
std::string usage(int prompt, int output) {
  return event(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt) +
               R"(,"completion_tokens":)" + std::to_string(output) + "}}");
}

RequestRecord read(Protocol protocol, int status, const net::Headers& headers, const Pieces& pieces,
                   const Status& end = {}) {
  AnswerReader reader(protocol, kStart);
  reader.head(status, headers);
  int last = 0;
  for (const auto& [ms, bytes] : pieces) {
    reader.body(kStart + milliseconds(ms), bytes);
    last = ms;
  }
  reader.end(kStart + milliseconds(last + 5), end);
  return reader.record();
}

RequestRecord completion(const Pieces& pieces, const Status& end = {}) {
  return read(Protocol::kCompletions, 200, kStream, pieces, end);
}

TEST(AnswerReader, TimesOfACompletion) {
  const RequestRecord record = completion({{100, text("a")},
                                           {130, text("bc")},
                                           {150, text("d", "\"length\"")},
                                           {180, usage(7, 5)},
                                           {181, event("[DONE]")}});
  EXPECT_TRUE(record.success) << record.error;
  EXPECT_EQ(record.text, "abcd");
  EXPECT_DOUBLE_EQ(record.ttft, 0.100);
  ASSERT_EQ(record.itls.size(), 2u);
  EXPECT_NEAR(record.itls[0], 0.030, 1e-9);
  EXPECT_NEAR(record.itls[1], 0.020, 1e-9);
  EXPECT_NEAR(record.latency, 0.150, 1e-9) << "usage and [DONE] are no output";
  EXPECT_EQ(record.prompt_len, 7);
  EXPECT_EQ(record.output_tokens, 5);
  EXPECT_NEAR(record.tpot(), 0.050 / 4, 1e-9);
}

TEST(AnswerReader, NoCutOfTheBytesChangesTheRecord) {
  const std::string stream =
      ": ping\n\n" + text("a\\u00e4") + text("b", "\"stop\"") + usage(3, 9) + event("[DONE]");
  const RequestRecord whole = completion({{10, stream}});
  ASSERT_TRUE(whole.success) << whole.error;
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    const RequestRecord record =
        completion({{10, stream.substr(0, cut)}, {10, stream.substr(cut)}});
    EXPECT_TRUE(record.success) << cut << ": " << record.error;
    EXPECT_EQ(record.text, whole.text) << cut;
    EXPECT_EQ(record.output_tokens, 9) << cut;
    EXPECT_EQ(record.itls.size(), 1u) << cut;
  }
}

TEST(AnswerReader, SeveralTokensInAChunkCountByTheUsage) {
  const RequestRecord counted =
      completion({{10, text("a b c")}, {20, text("d e", "\"stop\"")}, {30, usage(1, 5)}});
  EXPECT_EQ(counted.output_tokens, 5);
  EXPECT_TRUE(counted.counted_by_server);
  EXPECT_NEAR(counted.tpot(), 0.010 / 4, 1e-9);
  const RequestRecord uncounted = completion({{10, text("a b c")}, {20, text("d e", "\"stop\"")}});
  EXPECT_EQ(uncounted.output_tokens, 2);
  EXPECT_FALSE(uncounted.counted_by_server);
}

TEST(AnswerReader, AChatBeginsWithItsFirstContent) {
  const auto delta = [](const std::string& fields, const std::string& finish = "null") {
    return event(R"({"choices":[{"delta":{)" + fields + R"(},"finish_reason":)" + finish + "}]}");
  };
  const RequestRecord record = read(Protocol::kChat, 200, kStream,
                                    {{10, delta(R"("role":"assistant","content":"")")},
                                     {20, delta(R"("reasoning":"hm")")},
                                     {30, delta(R"("content":"Hi")")},
                                     {40, delta(R"("content":"")")},
                                     {50, delta(R"("tool_calls":[{"index":0}])")},
                                     {60, delta("", "\"stop\"")},
                                     {70, usage(4, 4)}});
  EXPECT_TRUE(record.success) << record.error;
  EXPECT_NEAR(record.ttft, 0.020, 1e-9);
  EXPECT_EQ(record.itls.size(), 3u);
  EXPECT_NEAR(record.latency, 0.050, 1e-9);
  EXPECT_EQ(record.text, "Hi");
}

TEST(AnswerReader, ResponsesEndWithTheirOwnEvents) {
  const auto typed = [](const std::string& type, const std::string& rest) {
    return "event: " + type + "\n" + event(R"({"type":")" + type + "\"" + rest + "}");
  };
  const Pieces begin = {{5, typed("response.created", "")},
                        {10, typed("response.reasoning_text.delta", R"(,"delta":"hm")")},
                        {20, typed("response.output_text.delta", R"(,"delta":"Hi")")}};
  Pieces whole = begin;
  whole.emplace_back(30, typed("response.completed",
                               R"(,"response":{"usage":{"input_tokens":3,"output_tokens":8}})"));
  const RequestRecord record = read(Protocol::kResponses, 200, kStream, whole);
  EXPECT_TRUE(record.success) << record.error;
  EXPECT_EQ(record.text, "Hi");
  EXPECT_NEAR(record.ttft, 0.010, 1e-9);
  EXPECT_EQ(record.prompt_len, 3);
  EXPECT_EQ(record.output_tokens, 8);
  EXPECT_FALSE(read(Protocol::kResponses, 200, kStream, begin).success) << "cut short";
  Pieces failed = begin;
  failed.emplace_back(30, typed("response.failed", R"(,"response":{"error":{"message":"no"}})"));
  EXPECT_EQ(read(Protocol::kResponses, 200, kStream, failed).error, "error in the stream: no");
}

TEST(AnswerReader, Embeddings) {
  const std::string body = R"({"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":11}})";
  const RequestRecord record =
      read(Protocol::kEmbeddings, 200, kJson, {{10, body.substr(0, 20)}, {30, body.substr(20)}});
  EXPECT_TRUE(record.success) << record.error;
  EXPECT_EQ(record.prompt_len, 11);
  EXPECT_EQ(record.output_tokens, 0);
  EXPECT_NEAR(record.latency, 0.035, 1e-9);
  EXPECT_EQ(read(Protocol::kEmbeddings, 200, kJson, {{1, "{}"}}).error,
            "the answer holds no embeddings");
}

TEST(AnswerReader, FailuresSayWhatHappened) {
  const RequestRecord refused =
      read(Protocol::kCompletions, 429, kJson, {{3, R"({"error":{"message":"too\nmany"}})"}});
  EXPECT_EQ(refused.error, "HTTP 429: too many");
  EXPECT_EQ(read(Protocol::kCompletions, 502, {}, {{3, "<html>bad</html>"}}).error,
            "HTTP 502: <html>bad</html>");
  EXPECT_EQ(read(Protocol::kCompletions, 500, {}, {}).error, "HTTP 500");
  EXPECT_EQ(completion({{1, text("a")}}, internal_error("it broke")).error, "it broke");
  EXPECT_EQ(completion({{1, text("a")}, {2, event(R"({"error":{"message":"late"}})")}}).error,
            "error in the stream: late");
  EXPECT_EQ(completion({{1, event("[DONE]")}}).error, "the stream ended without output");
  EXPECT_NE(completion({{1, text("a")}}).error.find("broke off"), std::string::npos);
  EXPECT_EQ(completion({{1, event("{half")}}).error, "a chunk is no JSON object: {half");
  EXPECT_NE(read(Protocol::kCompletions, 200, kJson, {{1, R"({"choices":[]})"}})
                .error.find("without a stream"),
            std::string::npos);
}

TEST(AnswerReader, AFailedRequestKeepsItsTimes) {
  const RequestRecord record =
      completion({{10, text("a")}, {30, text("b")}}, internal_error("closed"));
  EXPECT_FALSE(record.success);
  EXPECT_NEAR(record.ttft, 0.010, 1e-9);
  EXPECT_NEAR(record.latency, 0.030, 1e-9);
}

TEST(AnswerReader, HostileChunksAreErrorsAtMost) {
  for (const char* data :
       {"[]", "null", "1", R"({"choices":{}})", R"({"choices":[1]})", R"({"choices":[{"text":5}]})",
        R"({"usage":[]})", R"({"usage":{"completion_tokens":"many"}})", R"({"metrics":1})",
        R"({"choices":[{"delta":[]}]})"}) {
    for (const Protocol protocol :
         {Protocol::kCompletions, Protocol::kChat, Protocol::kResponses}) {
      read(protocol, 200, kStream, {{1, event(data)}});
    }
  }
}

TEST(AnswerReader, ServerTimes) {
  const RequestRecord record = completion(
      {{10, text("a", "\"stop\"")},
       {20,
        event(R"({"choices":[],"metrics":{"queue_time_ms":3,"time_to_first_token_ms":8.5}})")}});
  EXPECT_DOUBLE_EQ(record.server_queue_time.value(), 0.003);
  EXPECT_DOUBLE_EQ(record.server_ttft.value(), 0.0085);
}

TEST(AnswerReader, LongErrorsAreCut) {
  const RequestRecord record =
      read(Protocol::kCompletions, 500, {}, {{1, std::string(1 << 20, 'x')}, {2, "y"}});
  EXPECT_LT(record.error.size(), 400u);
}

}  // namespace
}  // namespace foretoken::bench
