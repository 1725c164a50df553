#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/backend.h"
#include "bench/request_record.h"
#include "net/headers.h"
#include "net/sse_parser.h"

namespace foretoken::bench {

// Reads the answer to one request and notes when its output came. Calls in the order head, body any
// number of times, end. One thread.
class AnswerReader {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `start`: when the request was sent.
  AnswerReader(Protocol protocol, Time start) : protocol_(protocol), start_(start) {}

  void head(int status, const net::Headers& headers);
  // `now`: when these bytes came.
  void body(Time now, std::string_view bytes);
  // `status`: how the transfer ended. Fills success and error.
  void end(Time now, const Status& status);

  const RequestRecord& record() const { return record_; }
  RequestRecord& record() { return record_; }

 private:
  void take_event(std::string_view data);
  void take_choice(const nlohmann::json& object);
  void take_response_event(const nlohmann::json& object);
  void take_usage(const nlohmann::json& usage, const char* input, const char* output);
  void take_server_times(const nlohmann::json& object);
  void take_output(const nlohmann::json& text);
  void read_whole_body();
  void fail(const std::string& error);

  const Protocol protocol_;
  const Time start_;
  RequestRecord record_;
  int http_status_ = 0;
  bool is_stream_ = false;
  bool saw_end_ = false;  // of the stream, in its own words
  Time now_;
  Time last_output_;
  std::string whole_body_;
  net::SseParser parser_;
};

// What an error body says, in one line: "message" of OpenAI's format, or the beginning of the text.
std::string error_text(std::string_view body);

}  // namespace foretoken::bench
