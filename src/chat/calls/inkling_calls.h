#pragma once
#include <memory>
#include <optional>
#include <string>

#include "chat/calls/call_object.h"
#include "chat/calls/tool_parser.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// Inkling's messages: blocks of thought, text and calls, {"name", "args"}, each behind a marker of
// its kind, which a name may precede. Text outside of blocks is content. One thread.
class InklingCalls : public ToolParser {
 public:
  // `finds_calls`: otherwise blocks of calls are content. `content`: what finds calls in the
  // content, where a choice forces a form on it; may be null.
  explicit InklingCalls(bool finds_calls, std::unique_ptr<ToolParser> content = nullptr);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class Block { kHeader, kContent, kReasoning, kCall, kNothing };

  void text(const std::string& text, CallSink* sink);
  void marker(int number, CallSink* sink);
  void begin_call(CallSink* sink);
  void call_byte(char byte, CallSink* sink);
  void no_call(CallSink* sink);
  void content(const std::string& text, CallSink* sink);
  void end_block(CallSink* sink);

  bool finds_calls_;
  std::unique_ptr<ToolParser> content_;
  MarkerScan markers_;
  Block block_ = Block::kHeader;  // the prompt has begun a message
  std::string header_;
  std::optional<CallObject> call_;
  std::string call_text_;  // until the call has begun in the sink
};

}  // namespace foretoken
