#include "chat/calls/harmony_calls.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace foretoken {
namespace {

constexpr std::string_view kFunctions = "functions.";
constexpr std::string_view kRecipient = " to=";  // first, where the prompt ends with the role
constexpr size_t kMaxHeaderLen = 512;

// The word behind the last `before` in the header; empty: none.
std::string word_behind(const std::string& header, std::string_view before) {
  const size_t at = header.rfind(before);
  if (at == std::string::npos) return {};
  const size_t begin = at + before.size();
  return header.substr(begin, header.find_first_of(" \t\r\n<", begin) - begin);
}

// Whether it may be the beginning of a role, channel, recipient and type with their markers.
bool may_be_header(std::string_view header) {
  constexpr std::string_view kBetween = "_-.:=/<|> ";
  constexpr auto kMaxBlanks = 4;
  // Models put dashes of Unicode before the name of a channel.
  const auto fits = [&](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code >= 0x80 || std::isalnum(code) != 0 || kBetween.find(byte) != std::string_view::npos;
  };
  return header.size() <= kMaxHeaderLen && std::all_of(header.begin(), header.end(), fits) &&
         std::count(header.begin(), header.end(), ' ') <= kMaxBlanks;
}

}  // namespace

HarmonyCalls::HarmonyCalls(bool finds_calls, std::unique_ptr<ToolParser> content)
    : finds_calls_(finds_calls),
      content_(std::move(content)),
      markers_({"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>",
                "<|return|>"}) {}

void HarmonyCalls::feed(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  this->text(text, sink);
  if (number >= 0) marker(markers_.marker(number), sink);
}

void HarmonyCalls::text(const std::string& text, CallSink* sink) {
  if (at_start_) {
    header_ += text;
    if (kRecipient.starts_with(header_)) return;
    at_start_ = false;
    in_header_ = header_.starts_with(kRecipient);
    return in_header_ ? void() : body(std::exchange(header_, {}), sink);
  }
  if (!in_header_) return body(text, sink);
  header_ += text;
  if (!may_be_header(header_)) no_header(sink);
}

// The markers were words about the format.
void HarmonyCalls::no_header(CallSink* sink) {
  in_header_ = false;
  body(std::exchange(header_, {}), sink);
}

void HarmonyCalls::marker(const std::string& text, CallSink* sink) {
  if (std::exchange(at_start_, false)) body(std::exchange(header_, {}), sink);
  if (!in_header_ && (text == "<|message|>" || text == "<|constrain|>")) return body(text, sink);
  if (text == "<|message|>") return begin_body(sink);
  end_.clear();
  if (text == "<|channel|>" || text == "<|constrain|>") {
    header_ += text;
    in_header_ = true;
    return;
  }
  const bool begins = text == "<|start|>";
  if (!begins && !in_header_ && body_ == Body::kContent) end_ = text;
  sink->end_call();
  body_ = Body::kContent;
  in_header_ = begins;
  header_ = begins ? text : std::string();
}

void HarmonyCalls::begin_body(CallSink* sink) {
  const std::string channel = word_behind(header_, "<|channel|>");
  std::string recipient = word_behind(header_, "to=");
  // A model that names itself goes on with what it writes.
  if (recipient == "assistant") recipient.clear();
  in_header_ = false;
  header_.clear();
  sink->end_call();
  const bool function = recipient.starts_with(kFunctions);
  if (function || sink->knows(recipient)) {
    body_ = finds_calls_ ? Body::kArguments : Body::kContent;
    if (!finds_calls_) return;
    const std::string name = function ? recipient.substr(kFunctions.size()) : recipient;
    if (name.empty()) {
      body_ = Body::kNothing;
      return;
    }
    sink->begin_call(name);
    arguments_ = JsonScan();
    return;
  }
  body_ = channel == "analysis" || !recipient.empty() ? Body::kReasoning : Body::kContent;
}

void HarmonyCalls::body(const std::string& text, CallSink* sink) {
  if (body_ == Body::kReasoning) return sink->reasoning(text);
  if (body_ == Body::kContent) return content(text, sink);
  if (body_ == Body::kNothing) return;
  for (const char byte : text) {
    if (arguments_.feed(byte) == ScanOutcome::kFlaw) {
      body_ = Body::kNothing;
      return;
    }
    sink->arguments(json_byte(byte, arguments_.in_string()));
  }
}

void HarmonyCalls::content(const std::string& text, CallSink* sink) {
  if (text.empty()) return;
  // No message ends where more of it comes.
  const std::string all = std::exchange(end_, {}) + text;
  if (content_ == nullptr) return sink->content(all);
  for (const char byte : all) content_->feed(byte, sink);
}

void HarmonyCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  // The beginning of a marker that is cut off is no text of a call or header.
  if (std::exchange(at_start_, false)) body(header_, sink);
  if (!in_header_ && body_ != Body::kArguments) body(held, sink);
  if (content_ != nullptr) content_->finish(sink);
  sink->end_call();
}

}  // namespace foretoken
