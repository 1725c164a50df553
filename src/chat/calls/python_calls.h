#pragma once
#include <string>

#include "chat/calls/marked_calls.h"
#include "chat/scan/python_scan.h"

namespace foretoken {

// Calls as a Python list, [f(a=1), g()], where the message begins or behind an opening marker, or
// as lines between markers. Without a marker, the functions must be known.
class PythonCalls : public MarkedCalls {
 public:
  struct Format {
    std::string open;    // before the list; empty: none
    std::string close;   // behind it
    bool bare = true;    // also without the marker
    bool lines = false;  // a call a line instead of a list
  };

  explicit PythonCalls(const Format& format);

 protected:
  void opened(int number, CallSink* sink) override;
  bool opened_bare(char byte, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class State { kList, kName, kFirst, kArgument, kValue, kAfterValue, kAfterCall, kClose };

  void begin(State state, bool marked);
  void name_byte(char byte, CallSink* sink);
  void argument_byte(char byte, CallSink* sink);
  void value_byte(char byte, CallSink* sink);
  void after_byte(char byte, CallSink* sink);
  void close_byte(CallSink* sink);
  void send(std::string_view json, CallSink* sink);
  void end_call(CallSink* sink);
  void flaw(CallSink* sink);

  Format format_;
  State state_ = State::kList;
  std::string name_;
  std::string key_;
  std::string pending_;  // goes before the first JSON of a value
  PythonScan value_;
  bool begun_ = false;  // the sink has the call
  bool had_call_ = false;
  bool marked_ = false;
};

}  // namespace foretoken
