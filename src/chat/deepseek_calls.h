#pragma once
#include <string>

#include "chat/json_scan.h"
#include "chat/marker_scan.h"
#include "chat/tool_parser.h"

namespace foretoken {

// Calls as DeepSeek V3, R1 (a fence of JSON behind the name) and V3.1 (JSON behind the separator)
// write them.
class DeepseekCalls : public ToolParser {
 public:
  DeepseekCalls();

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class State { kText, kSection, kHeader, kName, kArguments, kEnd };

  void text_byte(char byte, CallSink* sink);
  void header_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void arguments_byte(char byte, CallSink* sink);
  void begin_call(CallSink* sink);
  void flaw(CallSink* sink);

  MarkerScan markers_;
  MarkerScan separator_;
  ExpectScan section_;
  ExpectScan end_;
  State state_ = State::kText;
  std::string raw_;  // what has not gone to the sink yet
  std::string header_;
  std::string name_;
  JsonScan arguments_;
  bool had_call_ = false;
};

}  // namespace foretoken
