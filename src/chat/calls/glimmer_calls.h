#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/calls/tool_parser.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// Muse Glimmer's messages: a header that may say whom the body is for, then the body. Those to
// "self" are reasoning, those to "user" and to nobody content, and those to others calls, as
// elements "invoke" and "parameter" within a section. Text outside of messages is content. One
// thread.
class GlimmerCalls : public ToolParser {
 public:
  // `finds_calls`: otherwise bodies for tools are content. `tools`: of the request, which say what
  // types values have. `content`: what finds calls in the content, where a choice forces a form on
  // it; may be null.
  GlimmerCalls(bool finds_calls, nlohmann::ordered_json tools,
               std::unique_ptr<ToolParser> content = nullptr);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class Body { kHeader, kContent, kReasoning, kCalls };

  void text(const std::string& text, CallSink* sink);
  void marker(int number, CallSink* sink);
  void begin_body();
  void end_body(CallSink* sink);
  void content(const std::string& text, CallSink* sink);

  bool finds_calls_;
  nlohmann::ordered_json tools_;
  std::unique_ptr<ToolParser> content_;
  std::unique_ptr<ToolParser> calls_;  // of the body for a tool; otherwise null
  MarkerScan markers_;
  Body body_ = Body::kHeader;  // the prompt has begun a message
  std::string header_;
  bool has_messages_ = false;  // a marker has come
};

}  // namespace foretoken
