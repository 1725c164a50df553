#pragma once
#include <string>

#include "chat/calls/marked_calls.h"

namespace foretoken {

// Calls as Gemma 4 and FunctionGemma write them: call:NAME{key:VALUE,...} between markers, with
// bare keys and a marker as the quote of texts.
class GemmaCalls : public MarkedCalls {
 public:
  struct Format {
    std::string open;
    std::string close;
    std::string quote;
  };

  explicit GemmaCalls(const Format& format);

 protected:
  void opened(int number, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class State { kName, kKey, kValue, kText, kAfter, kClose };

  void name_byte(char byte, CallSink* sink);
  void key_byte(char byte, CallSink* sink);
  void value_byte(char byte, CallSink* sink);
  void text_byte(char byte, CallSink* sink);
  void after_byte(char byte, CallSink* sink);
  void open(char bracket, CallSink* sink);
  void separate(CallSink* sink);
  void flaw(CallSink* sink);

  Format format_;
  MarkerScan quote_;
  ExpectScan close_;
  State state_ = State::kName;
  std::string name_;
  std::string word_;    // a key or a value without quotes
  std::string stack_;   // open brackets
  bool comma_ = false;  // one is due before the next item
  bool begun_ = false;
};

}  // namespace foretoken
