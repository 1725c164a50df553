#include "bench/answer_reader.h"

#include <algorithm>

namespace foretoken::bench {
namespace {

using nlohmann::json;

constexpr size_t kMaxErrorBytes = 64 << 10;
constexpr size_t kMaxErrorText = 300;
constexpr const char* kStreamType = "text/event-stream";

double seconds_between(AnswerReader::Time from, AnswerReader::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

// Null for anything that is no object with that field.
const json& field(const json& object, const char* name) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

bool has_something(const json& value) {
  return !value.is_null() && !(value.is_string() && value.get_ref<const std::string&>().empty()) &&
         !(value.is_structured() && value.empty());
}

// A chunk of a chat carries output: text, reasoning or calls; or a token that stands for no text,
// which comes without a role, unlike the chunk that opens the answer.
bool has_chat_output(const json& delta) {
  for (const char* name :
       {"content", "reasoning", "reasoning_content", "tool_calls", "function_call"}) {
    if (has_something(field(delta, name))) return true;
  }
  return field(delta, "content").is_string() && !delta.contains("role");
}

bool is_stream(const net::Headers& headers) {
  return net::header_of(headers, "content-type").substr(0, std::string_view(kStreamType).size()) ==
         kStreamType;
}

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (text.size() > kMaxErrorText) text = text.substr(0, kMaxErrorText) + "...";
  return text;
}

std::string message_of(const json& error) {
  if (error.is_string()) return one_line(error.get<std::string>());
  const json& message = field(error, "message");
  if (message.is_string()) return one_line(message.get<std::string>());
  return one_line(error.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

std::string error_text(std::string_view body) {
  const json parsed = json::parse(body, nullptr, false);
  if (const json& error = field(parsed, "error"); has_something(error)) return message_of(error);
  for (const char* name : {"message", "detail"}) {
    if (const json& value = field(parsed, name); has_something(value)) return message_of(value);
  }
  return one_line(std::string(body));
}

void AnswerReader::head(int status, const net::Headers& headers) {
  http_status_ = status;
  is_stream_ = is_stream(headers);
}

void AnswerReader::body(Time now, std::string_view bytes) {
  now_ = now;
  if (http_status_ == 200 && is_stream_) {
    const Status status =
        parser_.feed(bytes, [this](std::string_view, std::string_view data) { take_event(data); });
    if (!status.ok()) fail(status.message());
    return;
  }
  const bool whole = http_status_ == 200 && protocol_ == Protocol::kEmbeddings;
  const size_t room = whole ? bytes.size() : kMaxErrorBytes - whole_body_.size();
  whole_body_.append(bytes.substr(0, room));
}

void AnswerReader::end(Time now, const Status& status) {
  now_ = now;
  if (http_status_ == 200 && is_stream_) {
    static_cast<void>(
        parser_.finish([this](std::string_view, std::string_view data) { take_event(data); }));
  }
  record_.latency = record_.num_chunks() > 0 ? seconds_between(start_, last_output_) : 0;
  if (!status.ok()) return fail(status.message());
  if (http_status_ != 200) {
    const std::string text = error_text(whole_body_);
    return fail("HTTP " + std::to_string(http_status_) + (text.empty() ? "" : ": " + text));
  }
  if (!record_.error.empty()) return;
  if (protocol_ == Protocol::kEmbeddings) return read_whole_body();
  if (!is_stream_) return fail("the server answered without a stream: " + error_text(whole_body_));
  if (record_.num_chunks() == 0) return fail("the stream ended without output");
  if (!saw_end_) return fail("the stream broke off: neither a finish reason nor [DONE] came");
  if (!record_.counted_by_server) {
    record_.output_tokens = static_cast<int64_t>(record_.num_chunks());
  }
  record_.success = true;
}

void AnswerReader::read_whole_body() {
  const json parsed = json::parse(whole_body_, nullptr, false);
  if (!parsed.is_object()) return fail("the answer is no JSON object: " + error_text(whole_body_));
  if (has_something(field(parsed, "error"))) return fail(error_text(whole_body_));
  if (!field(parsed, "data").is_array()) return fail("the answer holds no embeddings");
  take_usage(field(parsed, "usage"), "prompt_tokens", "completion_tokens");
  record_.output_tokens = 0;
  record_.latency = seconds_between(start_, now_);
  record_.ttft = record_.latency;
  record_.success = true;
}

void AnswerReader::take_event(std::string_view data) {
  if (data == "[DONE]") {
    saw_end_ = true;
    return;
  }
  const json object = json::parse(data, nullptr, false);
  if (!object.is_object()) return fail("a chunk is no JSON object: " + one_line(std::string(data)));
  if (const json& error = field(object, "error"); has_something(error)) {
    return fail("error in the stream: " + message_of(error));
  }
  if (protocol_ == Protocol::kResponses) {
    take_response_event(object);
  } else {
    take_choice(object);
  }
}

void AnswerReader::take_choice(const json& object) {
  take_server_times(object);
  const json& choices = field(object, "choices");
  if (choices.is_array() && !choices.empty()) {
    const json& choice = choices[0];
    const json& delta = field(choice, "delta");
    if (field(choice, "finish_reason").is_string()) saw_end_ = true;
    if (protocol_ == Protocol::kCompletions) {
      take_output(field(choice, "text"));
    } else if (has_chat_output(delta)) {
      take_output(field(delta, "content"));
    }
  }
  take_usage(field(object, "usage"), "prompt_tokens", "completion_tokens");
}

void AnswerReader::take_response_event(const json& object) {
  const json& type = field(object, "type");
  if (type == "response.output_text.delta") {
    take_output(field(object, "delta"));
  } else if (type == "response.reasoning_text.delta") {
    take_output(json());
  } else if (type == "response.completed" || type == "response.incomplete") {
    saw_end_ = true;
    take_usage(field(field(object, "response"), "usage"), "input_tokens", "output_tokens");
  } else if (type == "response.failed" || type == "error") {
    const json& error = field(field(object, "response"), "error");
    fail("error in the stream: " + message_of(has_something(error) ? error : object));
  }
}

void AnswerReader::take_usage(const json& usage, const char* input, const char* output) {
  if (const json& count = field(usage, output); count.is_number_integer()) {
    record_.output_tokens = count.get<int64_t>();
    record_.counted_by_server = true;
  }
  if (const json& count = field(usage, input); count.is_number_integer()) {
    record_.prompt_len = count.get<int64_t>();
  }
}

void AnswerReader::take_server_times(const json& object) {
  const json& metrics = field(object, "metrics");
  const auto seconds = [&](const char* name, std::optional<double>* value) {
    if (const json& ms = field(metrics, name); ms.is_number()) *value = ms.get<double>() / 1e3;
  };
  seconds("queue_time_ms", &record_.server_queue_time);
  seconds("time_to_first_token_ms", &record_.server_ttft);
}

void AnswerReader::take_output(const json& text) {
  if (record_.num_chunks() == 0) {
    record_.ttft = seconds_between(start_, now_);
  } else {
    record_.itls.push_back(seconds_between(last_output_, now_));
  }
  last_output_ = now_;
  if (text.is_string()) record_.text += text.get_ref<const std::string&>();
}

void AnswerReader::fail(const std::string& error) {
  record_.success = false;
  if (record_.error.empty()) record_.error = error.empty() ? "failed without a reason" : error;
}

}  // namespace foretoken::bench
