#include "chat/calls/section_calls.h"

#include <utility>

#include "base/text/ascii_text.h"

namespace foretoken {
namespace {

constexpr std::string_view kFence = "```json";

std::vector<std::string> with(std::vector<std::string> texts, const std::string& one) {
  texts.push_back(one);
  return texts;
}

// NAME of "functions.NAME:NUMBER", where both parts around it may be missing.
std::string name_in(std::string_view id) {
  constexpr std::string_view kNamespace = "functions.";
  if (id.starts_with(kNamespace)) id.remove_prefix(kNamespace.size());
  const size_t colon = id.rfind(':');
  const bool number =
      colon != std::string_view::npos &&
      id.substr(colon + 1).find_first_not_of("0123456789") == std::string_view::npos;
  return std::string(number ? id.substr(0, colon) : id);
}

}  // namespace

SectionCalls::SectionCalls(const SectionCallFormat& format)
    : MarkedCalls({with(format.begin, format.call_begin), with(format.end, format.call_end), {}}),
      format_(format),
      separator_({format.separator}),
      section_({}),
      end_({}) {
  bare_allowed_ = false;
}

void SectionCalls::opened(int number, CallSink*) {
  begun_ = false;
  expect_call();
  if (static_cast<size_t>(number) == format_.begin.size()) begin_header();
}

void SectionCalls::expect_call() {
  section_ = ExpectScan(with(format_.end, format_.call_begin));
  state_ = State::kSection;
}

void SectionCalls::begin_header() {
  header_.clear();
  separator_.take_held();
  state_ = State::kHeader;
}

void SectionCalls::inside(char byte, CallSink* sink) {
  switch (state_) {
    case State::kSection:
      return section_byte(byte, sink);
    case State::kHeader:
      return header_byte(byte, sink);
    case State::kName:
      return name_byte(byte, sink);
    case State::kArguments:
      return arguments_byte(byte, sink);
    case State::kEnd: {
      const int number = end_.feed(byte);
      if (number == ExpectScan::kFlaw) return flaw(sink);
      held_ = number < 0 ? held_ : std::string();
      if (number >= 0) expect_call();
      return;
    }
  }
}

void SectionCalls::section_byte(char byte, CallSink* sink) {
  const int number = section_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return give_back(sink);
  const bool call = static_cast<size_t>(number) == format_.end.size();
  return call ? begin_header() : leave();
}

void SectionCalls::header_byte(char byte, CallSink* sink) {
  const bool ended = separator_.feed(byte, &header_) >= 0;
  if (header_.size() > kMaxNameLen) return flaw(sink);
  if (!ended) return;
  header_ = trimmed_text(header_);
  name_.clear();
  state_ = State::kName;
}

// Either the arguments begin at once, behind a header that is the name, or "name", a fence, and the
// arguments.
void SectionCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '{') {
    name_ += byte;
    return name_.size() > kMaxNameLen ? flaw(sink) : void();
  }
  const std::string behind = trimmed_text(name_);
  name_ = format_.header_is_id ? name_in(header_) : header_;
  if (!behind.empty()) {
    if (!std::string_view(behind).ends_with(kFence)) return flaw(sink);
    name_ = trimmed_text(std::string_view(behind).substr(0, behind.size() - kFence.size()));
  }
  if (name_.empty() || name_.find_first_of(" \t\r\n<") != std::string::npos) return flaw(sink);
  begin_call(sink);
  arguments_byte(byte, sink);
}

void SectionCalls::begin_call(CallSink* sink) {
  sink->begin_call(name_, format_.header_is_id && header_ != name_ ? header_ : std::string());
  arguments_ = JsonScan();
  begun_ = true;
  state_ = State::kArguments;
}

void SectionCalls::arguments_byte(char byte, CallSink* sink) {
  const ScanOutcome outcome = arguments_.feed(byte);
  if (outcome == ScanOutcome::kFlaw) return flaw(sink);
  sink->arguments(json_byte(byte, arguments_.in_string()));
  held_.clear();
  if (outcome != ScanOutcome::kDone) return;
  sink->end_call();
  const std::string& end = format_.call_end;
  end_ = ExpectScan({"```" + end, "```\n" + end, end});
  state_ = State::kEnd;
}

void SectionCalls::flaw(CallSink* sink) { return begun_ ? pass_over(sink) : give_back(sink); }

void SectionCalls::cut(CallSink* sink) {
  sink->end_call();
  return begun_ ? leave() : give_back(sink);
}

}  // namespace foretoken
