#include "chat/calls/inkling_calls.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace foretoken {
namespace {

enum InklingMarker { kMessage, kText, kThinking, kCallJson, kCallText, kToolError, kEnd, kEndAll };

// Whether it may be the name of a function, which stands before the kind of a block.
bool may_be_name(std::string_view text) {
  constexpr std::string_view kBetween = "_-.:/";
  return text.size() <= kMaxNameLen && std::all_of(text.begin(), text.end(), [&](char byte) {
           return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
                  kBetween.find(byte) != std::string_view::npos;
         });
}

}  // namespace

InklingCalls::InklingCalls(bool finds_calls, std::unique_ptr<ToolParser> content)
    : finds_calls_(finds_calls),
      content_(std::move(content)),
      markers_({"<|message_model|>", "<|content_text|>", "<|content_thinking|>",
                "<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>",
                "<|content_tool_error|>", "<|end_message|>", "<|content_model_end_sampling|>"}) {}

void InklingCalls::feed(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  this->text(text, sink);
  if (number >= 0) marker(number, sink);
}

void InklingCalls::text(const std::string& text, CallSink* sink) {
  if (text.empty() || block_ == Block::kNothing) return;
  if (block_ == Block::kReasoning) return sink->reasoning(text);
  if (block_ == Block::kContent) return content(text, sink);
  if (block_ == Block::kHeader) {
    header_ += text;
    if (may_be_name(header_)) return;
    // A text without blocks.
    block_ = Block::kContent;
    return content(std::exchange(header_, {}), sink);
  }
  for (const char byte : text) call_byte(byte, sink);
}

void InklingCalls::marker(int number, CallSink* sink) {
  const bool ends = number == kEnd || number == kEndAll;
  // Within a call only an end is no part of its texts.
  const bool calls = block_ == Block::kCall && call_->begun();
  if (calls && !ends) return text(markers_.marker(number), sink);
  // A block without a kind.
  if (block_ == Block::kHeader && ends) content(std::exchange(header_, {}), sink);
  end_block(sink);
  switch (number) {
    case kMessage:
      block_ = Block::kHeader;
      break;
    case kThinking:
      block_ = Block::kReasoning;
      break;
    case kCallJson:
      begin_call(sink);
      break;
    default:
      block_ = Block::kContent;
  }
}

void InklingCalls::begin_call(CallSink* sink) {
  block_ = finds_calls_ ? Block::kCall : Block::kContent;
  if (finds_calls_) call_.emplace(CallObject::Rules{}, sink);
}

void InklingCalls::call_byte(char byte, CallSink* sink) {
  if (block_ != Block::kCall) return text(std::string(1, byte), sink);
  const bool first = call_text_.find_first_not_of(" \t\r\n") == std::string::npos;
  if (!call_->begun()) call_text_ += byte;
  if (first && !call_->begun() && is_space(byte)) return;
  if (first && byte != '{' && !call_->begun()) return no_call(sink);
  switch (call_->feed(byte)) {
    case CallObject::Outcome::kFlaw:
      if (!call_->begun()) return no_call(sink);
      [[fallthrough]];
    case CallObject::Outcome::kEnd:
      sink->end_call();
      call_text_.clear();
      block_ = Block::kNothing;
      break;
    default:
      break;
  }
}

void InklingCalls::no_call(CallSink* sink) {
  block_ = Block::kContent;
  content(std::exchange(call_text_, {}), sink);
}

void InklingCalls::content(const std::string& text, CallSink* sink) {
  if (content_ == nullptr) return sink->content(text);
  for (const char byte : text) content_->feed(byte, sink);
}

void InklingCalls::end_block(CallSink* sink) {
  header_.clear();
  if (block_ == Block::kCall && !call_->begun()) no_call(sink);
  if (block_ == Block::kCall) sink->end_call();
  call_text_.clear();
}

void InklingCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  // The beginning of a marker that is cut off is no text of a call.
  if (block_ != Block::kCall) text(held, sink);
  if (block_ == Block::kHeader) content(std::exchange(header_, {}), sink);
  if (block_ == Block::kCall && !call_->begun()) no_call(sink);
  if (content_ != nullptr) content_->finish(sink);
  sink->end_call();
}

}  // namespace foretoken
