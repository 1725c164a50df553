#pragma once
#include <string>

#include "chat/calls/call_sink.h"
#include "chat/scan/json_scan.h"

namespace foretoken {

// One call as {"name": "f", "arguments": {...}} that comes byte by byte; "parameters" and
// "args" mean "arguments", "tool_name" means "name", further keys are passed over. The call begins
// in the sink as soon as its name and the brace of its arguments are there; from then on the
// arguments go there as they come.
class CallObject {
 public:
  enum class Outcome {
    kHeld,  // taken, but nothing of the object has gone to the sink since kSent
    kSent,  // everything so far is in the sink
    kEnd,   // the object is complete and in the sink
    kFlaw,  // this byte cannot stand here, or the object is no call
  };
  struct Rules {
    bool needs_arguments = false;   // a name alone is no call
    bool needs_known_name = false;  // a name that the sink does not know is no call
    bool key_is_name = false;       // {"f": {...}}
  };

  CallObject(Rules rules, CallSink* sink) : rules_(rules), sink_(sink) {}

  // The first byte is the opening brace.
  Outcome feed(char byte);
  // Whether the sink has the call's beginning.
  bool begun() const { return begun_; }

 private:
  enum class State { kOpen, kFirstKey, kKey, kInKey, kColon, kValue, kAfter };
  enum class Member { kName, kArguments, kOther };

  Outcome structure(char byte);
  Outcome key_byte(char byte);
  Outcome value_byte(char byte);
  Outcome end_value();
  Outcome end_object();
  Outcome set_name();
  bool may_begin() const;
  void begin();

  Rules rules_;
  CallSink* sink_;
  State state_ = State::kOpen;
  Member member_ = Member::kOther;
  JsonScan scan_;
  std::string text_;  // the key or value that is being read
  std::string name_;
  std::string arguments_;  // that came before the name
  bool has_arguments_ = false;
  bool begun_ = false;
};

}  // namespace foretoken
