#pragma once
#include "chat/calls/call_sink.h"

namespace foretoken {

// Finds the calls in one format; everything else goes to the sink as content. One thread.
class ToolParser {
 public:
  virtual ~ToolParser() = default;
  virtual void feed(char byte, CallSink* sink) = 0;
  // After the last byte.
  virtual void finish(CallSink* sink) = 0;
};

}  // namespace foretoken
