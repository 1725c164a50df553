#pragma once
#include <string>

#include "chat/marker_scan.h"
#include "chat/tool_parser.h"

namespace foretoken {

// Calls as Qwen3-Coder writes them:
// <tool_call><function=f><parameter=a>value</parameter></function>
// </tool_call>. Values become JSON by the types that the request's tools declare; texts are sent as
// they come.
class XmlCalls : public ToolParser {
 public:
  explicit XmlCalls(nlohmann::ordered_json tools);

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink* sink) override;

 private:
  enum class State { kText, kOpened, kName, kBody, kKey, kString, kOther, kClose };

  void text_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void body_byte(char byte, CallSink* sink);
  void key_byte(char byte, CallSink* sink);
  void value_byte(char byte, CallSink* sink);
  void send_string(std::string text, CallSink* sink);
  void send_other(CallSink* sink);
  void close_byte(char byte, CallSink* sink);
  void flaw(CallSink* sink);

  nlohmann::ordered_json tools_;
  MarkerScan markers_;
  ExpectScan function_;
  ExpectScan body_;
  ExpectScan close_;
  MarkerScan value_end_;
  State state_ = State::kText;
  std::string raw_;  // what has not gone to the sink yet
  std::string name_;
  std::string key_;
  std::string value_;
  bool value_begun_ = false;  // its first byte has come
  bool begun_ = false;        // the sink has the call
  int num_parameters_ = 0;
};

// The text of a parameter as JSON, by what its schema allows (null: text).
std::string typed_value(const std::string& text, const nlohmann::ordered_json& schema);

}  // namespace foretoken
