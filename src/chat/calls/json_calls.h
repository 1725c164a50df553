#pragma once
#include <optional>
#include <string>
#include <vector>

#include "chat/calls/call_object.h"
#include "chat/calls/marked_calls.h"

namespace foretoken {

// How a family of models writes calls as JSON objects.
struct JsonCallFormat {
  // Markers before a call or a list of calls. One that ends with a bracket has opened the list.
  std::vector<std::string> open;
  std::string close;              // the marker behind it; empty: none
  bool bare = false;              // also without a marker, where the message begins
  bool list = false;              // [{...}, {...}]
  bool single = false;            // {...}
  bool named = false;             // name{...}, with "[CALL_ID]..." and "[ARGS]" in between
  bool forced = false;            // the text is nothing but calls; what is cut off is dropped
  std::string separators;         // characters after which a bare call may follow a call
  bool needs_known_name = false;  // of calls without a marker
  bool key_is_name = false;       // {"f": {...}} is a call of f
};

// Calls as JSON: Hermes, Llama 3, Granite, Mistral, and what tool_choice_outputs() forces.
class JsonCalls : public MarkedCalls {
 public:
  explicit JsonCalls(const JsonCallFormat& format);

 protected:
  void opened(int number, CallSink* sink) override;
  bool opened_bare(char byte, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class State { kForm, kObject, kAfterItem, kNextItem, kName, kArgs, kClose };

  void form_byte(char byte, CallSink* sink);
  void object_byte(char byte, CallSink* sink);
  void list_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void args_byte(char byte, CallSink* sink);
  void close_byte(char byte, CallSink* sink);
  void begin_object(char byte, CallSink* sink);
  void end_item(CallSink* sink);
  void flaw(CallSink* sink);
  bool has_close() const { return marked_ && !format_.close.empty(); }

  JsonCallFormat format_;
  State state_ = State::kForm;
  std::optional<CallObject> object_;
  std::string name_;
  JsonScan args_;
  bool marked_ = false;  // the candidate began with a marker
  bool in_list_ = false;
  bool had_item_ = false;  // since the marker
};

}  // namespace foretoken
