#pragma once
#include <string>

#include "chat/calls/tool_parser.h"
#include "chat/scan/json_scan.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// gpt-oss's messages: a header with a channel and perhaps a recipient, then a body. Bodies of the
// channel "analysis" are reasoning, those for functions are calls, the rest is content. Text
// outside of messages is content, too. One thread.
class HarmonyCalls : public ToolParser {
 public:
  // `finds_calls`: otherwise the bodies for functions are content.
  explicit HarmonyCalls(bool finds_calls);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class Body { kContent, kReasoning, kArguments, kNothing };

  void text(const std::string& text, CallSink* sink);
  void marker(const std::string& text, CallSink* sink);
  void begin_body(CallSink* sink);
  void body(const std::string& text, CallSink* sink);

  bool finds_calls_;
  MarkerScan markers_;
  bool at_start_ = true;  // the prompt may have begun a header
  bool in_header_ = false;
  std::string header_;
  Body body_ = Body::kContent;
  JsonScan arguments_;
};

}  // namespace foretoken
