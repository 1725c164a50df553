#include "chat/calls/call_sink.h"

#include <algorithm>
#include <random>
#include <utility>

namespace foretoken {

std::string make_tool_call_id(CallIdStyle style) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  const bool mistral = style == CallIdStyle::kMistral;
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::uniform_int_distribution<size_t> digit(0, mistral ? kDigits.size() - 1 : 15);
  std::string id = mistral ? "" : "chatcmpl-tool-";
  for (int i = 0; i < (mistral ? 9 : 32); ++i) id += kDigits[digit(generator)];
  return id;
}

void CallSink::append(ChatPiece::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool same =
      !pieces_.empty() && pieces_.back().kind == kind &&
      (kind != ChatPiece::Kind::kToolCall || pieces_.back().call_index == num_calls_ - 1);
  if (!same) {
    ChatPiece piece;
    piece.kind = kind;
    if (kind == ChatPiece::Kind::kToolCall) piece.call_index = num_calls_ - 1;
    pieces_.push_back(std::move(piece));
  }
  pieces_.back().text += text;
}

void CallSink::reasoning(std::string_view text) {
  if (text.empty()) return;
  end_call();
  append(ChatPiece::Kind::kReasoning, text);
}

void CallSink::content(std::string_view text) {
  if (text.empty()) return;
  end_call();
  if (options_.drop_space && !has_content_) {
    held_space_ += text;
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    has_content_ = true;
    append(ChatPiece::Kind::kContent, held_space_);
    held_space_.clear();
    return;
  }
  append(ChatPiece::Kind::kContent, text);
}

void CallSink::begin_call(const std::string& name, const std::string& id) {
  end_call();
  held_space_.clear();
  has_content_ = false;
  ++num_calls_;
  if (num_calls_ > 1 && !options_.parallel_tool_calls) return;
  ChatPiece piece;
  piece.kind = ChatPiece::Kind::kToolCall;
  piece.call_index = num_calls_ - 1;
  piece.call_id = id.empty() ? make_tool_call_id(options_.id_style) : id;
  piece.call_name = name;
  pieces_.push_back(std::move(piece));
  arguments_.emplace();
}

void CallSink::arguments(std::string_view text) {
  if (arguments_) append(ChatPiece::Kind::kToolCall, arguments_->feed(text));
}

void CallSink::end_call() {
  if (!arguments_) return;
  append(ChatPiece::Kind::kToolCall, arguments_->finish());
  arguments_.reset();
}

void CallSink::finish() {
  end_call();
  if (num_calls_ == 0) append(ChatPiece::Kind::kContent, held_space_);
  held_space_.clear();
}

bool CallSink::knows(const std::string& name) const {
  return std::find(options_.names.begin(), options_.names.end(), name) != options_.names.end();
}

std::vector<ChatPiece> CallSink::take() { return std::exchange(pieces_, {}); }

}  // namespace foretoken
