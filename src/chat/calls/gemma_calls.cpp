#include "chat/calls/gemma_calls.h"

#include <nlohmann/json.hpp>

#include "base/text/ascii_text.h"
#include "chat/scan/json_scan.h"

namespace foretoken {
namespace {

using PlainJson = nlohmann::json;

constexpr std::string_view kCall = "call:";
constexpr size_t kMaxDepth = 200;

std::string dump(const std::string& text) {
  return PlainJson(text).dump(-1, ' ', false, PlainJson::error_handler_t::replace);
}

// A value without quotes: a number, a word of JSON or Python, or a text after all.
std::string plain_value(const std::string& text) {
  if (text == "True" || text == "False") return text == "True" ? "true" : "false";
  if (text == "None" || text == "nil") return "null";
  const PlainJson value = PlainJson::parse(text, nullptr, false);
  return value.is_primitive() && !value.is_discarded() ? text : dump(text);
}

std::string escaped_text(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') out += '\\';
    out += json_byte(byte, true);
  }
  return out;
}

}  // namespace

GemmaCalls::GemmaCalls(const Format& format)
    : MarkedCalls({{format.open}, {format.close}, {}}),
      format_(format),
      quote_({format.quote}),
      close_({format.close}) {
  bare_allowed_ = false;
}

void GemmaCalls::opened(int, CallSink*) {
  name_.clear();
  begun_ = false;
  state_ = State::kName;
}

void GemmaCalls::inside(char byte, CallSink* sink) {
  switch (state_) {
    case State::kName:
      return name_byte(byte, sink);
    case State::kKey:
      return key_byte(byte, sink);
    case State::kValue:
      return value_byte(byte, sink);
    case State::kText:
      return text_byte(byte, sink);
    case State::kAfter:
      return after_byte(byte, sink);
    case State::kClose: {
      const int number = close_.feed(byte);
      if (number == ExpectScan::kFlaw) return flaw(sink);
      return number < 0 ? void() : leave();
    }
  }
}

void GemmaCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '{') {
    name_ += byte;
    return name_.size() > kMaxNameLen ? flaw(sink) : void();
  }
  name_ = trimmed_text(name_);
  if (!name_.starts_with(kCall)) return flaw(sink);
  name_ = trimmed_text(name_.substr(kCall.size()));
  if (name_.empty() || name_.find_first_of(" \t\r\n<>") != std::string::npos) return flaw(sink);
  sink->begin_call(name_);
  begun_ = true;
  stack_.clear();
  comma_ = false;
  open(byte, sink);
}

void GemmaCalls::open(char bracket, CallSink* sink) {
  if (stack_.size() >= kMaxDepth) return flaw(sink);
  stack_ += bracket;
  sink->arguments({&bracket, 1});
  comma_ = false;
  word_.clear();
  quote_.take_held();
  state_ = bracket == '{' ? State::kKey : State::kValue;
}

void GemmaCalls::separate(CallSink* sink) {
  if (comma_) sink->arguments(", ");
  comma_ = true;
}

// Keys may stand between quotes as well.
void GemmaCalls::key_byte(char byte, CallSink* sink) {
  held_.clear();
  if (quote_.feed(byte, &word_) >= 0) return;
  if (word_.size() > kMaxNameLen) return flaw(sink);
  if (word_.empty()) return;
  const char last = word_.back();
  if (last == '}' && trimmed_text(word_) == "}") return after_byte('}', sink);
  if (last != ':') return;
  word_.pop_back();
  separate(sink);
  sink->arguments(dump(trimmed_text(word_)) + ": ");
  word_.clear();
  state_ = State::kValue;
}

void GemmaCalls::value_byte(char byte, CallSink* sink) {
  held_.clear();
  std::string text;
  const int number = quote_.feed(byte, &text);
  const bool in_list = stack_.back() == '[';
  if (number >= 0) {
    if (in_list) separate(sink);
    sink->arguments("\"");
    state_ = State::kText;
    return;
  }
  for (const char one : text) {
    const bool starts = trimmed_text(word_).empty();
    if (starts && (one == '{' || one == '[')) {
      if (in_list) separate(sink);
      return open(one, sink);
    }
    if (one != ',' && one != '}' && one != ']') {
      word_ += one;
      continue;
    }
    if (!starts && in_list) separate(sink);
    if (!starts) sink->arguments(plain_value(trimmed_text(word_)));
    if (starts && !in_list) sink->arguments("null");
    word_.clear();
    return after_byte(one, sink);
  }
}

void GemmaCalls::text_byte(char byte, CallSink* sink) {
  held_.clear();
  std::string text;
  const bool ended = quote_.feed(byte, &text) >= 0;
  sink->arguments(escaped_text(text));
  if (!ended) return;
  sink->arguments("\"");
  word_.clear();
  state_ = State::kAfter;
}

void GemmaCalls::after_byte(char byte, CallSink* sink) {
  held_ = byte;
  if (is_space(byte)) return;
  const bool object = stack_.back() == '{';
  if (byte == ',') {
    word_.clear();
    state_ = object ? State::kKey : State::kValue;
    return;
  }
  if (byte != (object ? '}' : ']')) return flaw(sink);
  sink->arguments({&byte, 1});
  held_.clear();
  stack_.pop_back();
  comma_ = true;
  word_.clear();
  state_ = State::kAfter;
  if (!stack_.empty()) return;
  sink->end_call();
  close_ = ExpectScan({format_.close});
  state_ = State::kClose;
}

void GemmaCalls::flaw(CallSink* sink) { return begun_ ? pass_over(sink) : give_back(sink); }

void GemmaCalls::cut(CallSink* sink) {
  sink->end_call();
  return begun_ ? leave() : give_back(sink);
}

}  // namespace foretoken
