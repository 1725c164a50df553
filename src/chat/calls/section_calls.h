#pragma once
#include <string>
#include <vector>

#include "chat/calls/marked_calls.h"
#include "chat/scan/json_scan.h"

namespace foretoken {

// How a family of models writes calls as a header, a separator and JSON, in a section.
struct SectionCallFormat {
  std::vector<std::string> begin;
  std::vector<std::string> end;
  std::string call_begin;
  std::string call_end;
  std::string separator;
  bool header_is_id = false;  // functions.NAME:NUMBER
};

// Calls as DeepSeek V3, R1 (a fence of JSON behind the name), V3.1 (JSON behind the separator) and
// Kimi K2 (whose header is the call's id) write them.
class SectionCalls : public MarkedCalls {
 public:
  explicit SectionCalls(const SectionCallFormat& format);

 protected:
  void opened(int number, CallSink* sink) override;
  void inside(char byte, CallSink* sink) override;
  void cut(CallSink* sink) override;

 private:
  enum class State { kSection, kHeader, kName, kArguments, kEnd };

  void expect_call();
  void begin_header();
  void section_byte(char byte, CallSink* sink);
  void header_byte(char byte, CallSink* sink);
  void name_byte(char byte, CallSink* sink);
  void begin_call(CallSink* sink);
  void arguments_byte(char byte, CallSink* sink);
  void flaw(CallSink* sink);

  SectionCallFormat format_;
  MarkerScan separator_;
  ExpectScan section_;
  ExpectScan end_;
  State state_ = State::kSection;
  std::string header_;
  std::string name_;
  JsonScan arguments_;
  bool begun_ = false;  // a call since the marker
};

}  // namespace foretoken
