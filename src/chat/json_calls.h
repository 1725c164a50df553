#pragma once
#include <optional>
#include <string>
#include <vector>

#include "chat/call_object.h"
#include "chat/marker_scan.h"
#include "chat/tool_parser.h"

namespace foretoken {

// How a family of models writes calls as JSON objects.
struct JsonCallFormat {
  std::vector<std::string> open;  // markers before a call or a list of calls
  std::string close;              // the marker behind it; empty: none
  bool bare = false;              // also without a marker, where the message begins
  bool list = false;              // [{...}, {...}]
  bool single = false;            // {...}
  bool named = false;             // name{...}, with "[CALL_ID]..." and "[ARGS]" in between
  std::string separators;         // characters after which a bare call may follow a call
  bool needs_known_name = false;  // of calls without a marker
};

// Calls as JSON: Hermes, Llama 3, Granite, Mistral, and what tool_choice_outputs() forces.
class JsonCalls : public ToolParser {
 public:
  explicit JsonCalls(const JsonCallFormat& format);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class State { kText, kForm, kObject, kAfterItem, kNextItem, kName, kArgs, kClose };

  void text_byte(char byte, CallSink* sink);
  void form_byte(char byte, CallSink* sink);
  void object_byte(char byte, CallSink* sink);
  void list_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void args_byte(char byte, CallSink* sink);
  void close_byte(char byte, CallSink* sink);
  void begin_object(char byte, CallSink* sink);
  void end_item();
  void flaw(CallSink* sink);

  JsonCallFormat format_;
  MarkerScan markers_;
  State state_ = State::kText;
  std::string raw_;  // what has not gone to the sink yet
  std::optional<CallObject> object_;
  std::string name_;
  JsonScan args_;
  bool bare_allowed_;
  bool marked_ = false;  // the candidate began with a marker
  bool in_list_ = false;
  bool had_item_ = false;  // since the marker
};

}  // namespace foretoken
