#pragma once
#include <memory>
#include <string>

#include "chat/calls/tool_parser.h"
#include "chat/scan/json_scan.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// gpt-oss's messages: a header with a channel and perhaps a recipient, then a body. Bodies of the
// channel "analysis" are reasoning, those for functions are calls, the rest is content. Text
// outside of messages is content, too, and so are markers that are no part of one. One thread.
class HarmonyCalls : public ToolParser {
 public:
  // `finds_calls`: otherwise the bodies for functions are content. `content`: what finds calls in
  // the content, where a choice forces a form on it; may be null.
  explicit HarmonyCalls(bool finds_calls, std::unique_ptr<ToolParser> content = nullptr);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class Body { kContent, kReasoning, kArguments, kNothing };

  void text(const std::string& text, CallSink* sink);
  void marker(const std::string& text, CallSink* sink);
  void begin_body(CallSink* sink);
  void body(const std::string& text, CallSink* sink);
  void content(const std::string& text, CallSink* sink);
  void no_header(CallSink* sink);

  bool finds_calls_;
  std::unique_ptr<ToolParser> content_;
  MarkerScan markers_;
  bool at_start_ = true;  // the prompt may have begun a header
  bool in_header_ = false;
  std::string header_;
  std::string end_;  // the marker that has ended a content, if it has
  Body body_ = Body::kContent;
  JsonScan arguments_;
};

}  // namespace foretoken
