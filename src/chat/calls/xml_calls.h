#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/call_object.h"
#include "chat/calls/marked_calls.h"

namespace foretoken {

// How a family of models writes calls with an element for each parameter. A section holds calls, a
// call a name and parameters, a parameter a key and a value.
struct XmlCallFormat {
  std::vector<std::string> section_open;
  std::vector<std::string> section_close;
  std::vector<std::string> fillers;    // mean nothing between calls
  std::string call_open;               // before the name; empty: the section is one call
  std::vector<std::string> name_ends;  // behind the name; those that mean more are read again
  std::string call_close;              // empty: the section's
  std::string key_open;
  std::string key_close;
  std::string value_open;  // empty: the value follows the key at once
  std::string value_close;
  std::string type_open;  // of an element behind the key that may name the value's type; or empty
  std::string type_close;
  bool objects = false;       // a call may be {"name": ..., "arguments": {...}} instead
  bool bare = false;          // a call without its section counts
  bool attributes = false;    // the key ends with a quote, and may have string="true" behind it
  bool line_breaks = false;   // one behind the key and one before value_close belong to the form
  bool untyped_json = false;  // values without a declared type may be JSON; otherwise texts
  bool cdata = false;         // a value may stand in <![CDATA[...]]>
  // All parameters may stand in one "arguments" or "input" that the tool does not have.
  bool wrapped = false;
};

// Calls as Qwen3-Coder, GLM, MiniMax M2, DeepSeek V3.2, Kimi K3, Seed-OSS, Hunyuan 3, MiniCPM 5,
// K2 Horizon, Dots and Step 3 write them. Values become
// JSON by the types that the request's tools declare; texts are sent as they come. What is missing
// at the end of a value, call or section is put there.
class XmlCalls : public MarkedCalls {
 public:
  XmlCalls(XmlCallFormat format, nlohmann::ordered_json tools);

 protected:
  void opened(int number, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class Kind { kDeclared, kText, kJson };
  enum class State {
    kCalls,
    kName,
    kObject,
    kObjectEnd,
    kBody,
    kKey,
    kValueOpen,
    kType,
    kMaybeCdata,
    kValue,
    kMaybeEnd
  };

  static Kind declared_kind(std::string_view attributes);
  bool is_section_close(const std::string& marker) const;
  void expect_calls();
  void begin_name();
  void calls_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void begin_object(CallSink* sink);
  void object_byte(char byte, CallSink* sink);
  void object_end_byte(char byte, CallSink* sink);
  void body_byte(char byte, CallSink* sink);
  void key_byte(char byte, CallSink* sink);
  void expect_value();
  void value_open_byte(char byte, CallSink* sink);
  void type_byte(char byte, CallSink* sink);
  void begin_value(CallSink* sink);
  void cdata_byte(char byte, CallSink* sink);
  MarkerScan& value_end() { return in_cdata_ ? cdata_end_ : value_end_; }
  void value_byte(char byte, CallSink* sink);
  void add_to_value(std::string text, bool ended, CallSink* sink);
  std::string other_value() const;
  bool is_whole_value() const;
  void tell_key(CallSink* sink);
  bool tell_wrapped(CallSink* sink);
  void end_value(CallSink* sink);
  void maybe_end_byte(char byte, CallSink* sink);
  void no_end(CallSink* sink);
  void end_call(bool section_too, CallSink* sink);
  void replay(const std::string& text, CallSink* sink);
  void flaw(CallSink* sink);

  XmlCallFormat format_;
  nlohmann::ordered_json tools_;
  std::vector<std::string> calls_texts_;  // what may come between calls
  std::vector<std::string> body_texts_;   // what may come between parameters
  ExpectScan expected_;
  MarkerScan name_end_;
  MarkerScan key_end_;
  MarkerScan type_end_;
  MarkerScan value_end_;
  MarkerScan cdata_end_;
  State state_ = State::kCalls;
  std::string name_;
  std::optional<CallObject> object_;
  std::string key_;
  std::string type_;
  std::string value_;
  std::string value_start_;  // what may begin with <![CDATA[
  bool in_cdata_ = false;
  std::string end_marker_;       // of a value, where more must show that it is one
  bool text_ = false;            // the value is sent as it comes
  Kind kind_ = Kind::kDeclared;  // what the parameter says of its value
  bool value_begun_ = false;     // its first byte has come
  bool wraps_ = false;           // the value may hold the parameters; its key is not told yet
  bool begun_ = false;           // the sink has a call of the section
  bool in_section_ = false;
  int num_parameters_ = 0;
};

}  // namespace foretoken
