#pragma once
#include <string>
#include <vector>

#include "chat/calls/marked_calls.h"

namespace foretoken {

// Calls as MiniMax M3 writes them: elements behind a mark of their own, "]<]minimax[>[". A section
// holds calls, a call an element for each parameter, named as it is, and values of objects and
// lists have elements again ("item" in lists). Values become JSON by the schemas of the request's
// tools; texts are sent as they come.
class NestedCalls : public MarkedCalls {
 public:
  explicit NestedCalls(nlohmann::ordered_json tools);

 protected:
  void opened(int number, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class State { kCalls, kName, kText, kTag };
  // An element that is open; the first stands for the call itself.
  struct Element {
    std::string tag;
    nlohmann::ordered_json schema;
    bool is_list = false;
    bool has_elements = false;  // it is an object or a list
    int num_elements = 0;
  };

  void calls_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void text_byte(char byte, CallSink* sink);
  void tag_byte(char byte, CallSink* sink);
  void begin_call(CallSink* sink);
  void begin_element(const std::string& tag, CallSink* sink);
  void end_element(CallSink* sink);
  void end_call(bool section_too, CallSink* sink);
  void send_text(CallSink* sink);
  bool is_blank() const;
  void flaw(CallSink* sink);

  nlohmann::ordered_json tools_;
  State state_ = State::kCalls;
  ExpectScan expected_;
  MarkerScan mark_;
  std::string name_;
  std::string tag_;
  std::string value_;   // of the innermost element, what has not been sent
  bool sends_ = false;  // the element is a text that has begun in the sink
  bool begun_ = false;  // a call of the section is in the sink
  std::vector<Element> open_;
};

}  // namespace foretoken
