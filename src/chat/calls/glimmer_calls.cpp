#include "chat/calls/glimmer_calls.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "chat/calls/xml_calls.h"

namespace foretoken {
namespace {

enum GlimmerMarker { kStartMarker, kBodyMarker };  // and the ends of a message and of a turn

constexpr std::string_view kRole = "assistant";
constexpr std::string_view kTo = "to=";

std::string_view without_space(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

bool is_recipient(std::string_view text) {
  constexpr std::string_view kBetween = "_-.:/";
  return text.size() <= kMaxNameLen && std::ranges::all_of(text, [&](char byte) {
           return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
                  kBetween.find(byte) != std::string_view::npos;
         });
}

// Whether " to=NAME" may begin so, behind a role or not.
bool may_be_address(std::string_view header) {
  if (header.size() > 2 * kMaxNameLen) return false;
  std::string_view rest = without_space(header);
  if (kRole.starts_with(rest)) return true;
  if (rest.starts_with(kRole)) rest = without_space(rest.substr(kRole.size()));
  if (kTo.starts_with(rest)) return true;
  return rest.starts_with(kTo) && is_recipient(rest.substr(kTo.size()));
}

std::string recipient_of(const std::string& header) {
  const size_t to = header.find(kTo);
  return to == std::string::npos ? std::string() : header.substr(to + kTo.size());
}

std::unique_ptr<ToolParser> make_calls(nlohmann::ordered_json tools) {
  XmlCallFormat format;
  format.section_open = {"<atem:function_calls>"};
  format.section_close = {"</atem:function_calls>"};
  format.call_open = "<atem:invoke name=\"";
  format.name_ends = {">"};
  format.call_close = "</atem:invoke>";
  format.key_open = "<atem:parameter name=\"";
  format.key_close = ">";
  format.value_close = "</atem:parameter>";
  format.bare = true;
  format.attributes = true;
  return std::make_unique<XmlCalls>(std::move(format), std::move(tools));
}

}  // namespace

GlimmerCalls::GlimmerCalls(bool finds_calls, nlohmann::ordered_json tools,
                           std::unique_ptr<ToolParser> content)
    : finds_calls_(finds_calls),
      tools_(std::move(tools)),
      content_(std::move(content)),
      markers_({"<|start|>", "<|message|>", "<|eom|>", "<|eot|>"}) {}

void GlimmerCalls::feed(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  this->text(text, sink);
  if (number >= 0) marker(number, sink);
}

void GlimmerCalls::text(const std::string& text, CallSink* sink) {
  if (text.empty()) return;
  if (body_ == Body::kReasoning) return sink->reasoning(text);
  if (body_ == Body::kContent) return content(text, sink);
  if (body_ == Body::kCalls) {
    for (const char byte : text) calls_->feed(byte, sink);
    return;
  }
  header_ += text;
  if (may_be_address(header_)) return;
  // A text without messages.
  body_ = Body::kContent;
  content(std::exchange(header_, {}), sink);
}

void GlimmerCalls::marker(int number, CallSink* sink) {
  // Only what a message begins or ends with is no part of a call's texts.
  if (body_ == Body::kCalls && number == kBodyMarker) return text(markers_.marker(number), sink);
  has_messages_ = true;
  if (number == kBodyMarker && body_ == Body::kHeader) return begin_body();
  end_body(sink);
  // A body whose header lacks its own beginning is for the user.
  if (number == kBodyMarker) body_ = Body::kContent;
}

void GlimmerCalls::begin_body() {
  const std::string recipient = recipient_of(std::exchange(header_, {}));
  const bool for_user = recipient.empty() || recipient == "user";
  if (recipient == "self") {
    body_ = Body::kReasoning;
  } else if (for_user || !finds_calls_) {
    body_ = Body::kContent;
  } else {
    calls_ = make_calls(tools_);
    body_ = Body::kCalls;
  }
}

// What comes next is a header.
void GlimmerCalls::end_body(CallSink* sink) {
  if (calls_ != nullptr) calls_->finish(sink);
  calls_.reset();
  header_.clear();
  body_ = Body::kHeader;
}

void GlimmerCalls::content(const std::string& text, CallSink* sink) {
  if (content_ == nullptr) return sink->content(text);
  for (const char byte : text) content_->feed(byte, sink);
}

void GlimmerCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  // The beginning of a marker that is cut off is no text of a call.
  if (body_ != Body::kCalls) text(held, sink);
  const bool is_text = body_ == Body::kHeader && !has_messages_;
  if (is_text && header_.find(kTo) == std::string::npos) content(header_, sink);
  end_body(sink);
  if (content_ != nullptr) content_->finish(sink);
  sink->end_call();
}

}  // namespace foretoken
