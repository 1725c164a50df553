#pragma once
#include <string>

#include "chat/marker_scan.h"
#include "chat/python_scan.h"
#include "chat/tool_parser.h"

namespace foretoken {

// Calls as a Python list, [f(a=1), g()], where the message begins or behind an opening marker.
// Without a marker, the functions must be known.
class PythonCalls : public ToolParser {
 public:
  struct Format {
    std::string open;   // before the list; empty: none
    std::string close;  // behind it
  };

  explicit PythonCalls(const Format& format);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class State {
    kText,
    kList,
    kName,
    kFirst,
    kArgument,
    kValue,
    kAfterValue,
    kAfterCall,
    kClose
  };

  void text_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void argument_byte(char byte, CallSink* sink);
  void value_byte(char byte, CallSink* sink);
  void after_byte(char byte, CallSink* sink);
  void close_byte(CallSink* sink);
  void send(std::string_view json, CallSink* sink);
  void flaw(CallSink* sink);

  Format format_;
  MarkerScan markers_;
  State state_ = State::kText;
  std::string raw_;  // what has not gone to the sink yet
  std::string name_;
  std::string key_;
  std::string pending_;  // goes before the first JSON of a value
  PythonScan value_;
  bool begun_ = false;  // the sink has the call
  bool had_call_ = false;
  bool marked_ = false;
  bool at_start_ = true;
};

}  // namespace foretoken
