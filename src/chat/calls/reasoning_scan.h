#pragma once
#include <string>
#include <vector>

#include "chat/calls/call_sink.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// How a family of models marks its reasoning.
struct ReasoningFormat {
  std::vector<std::string> open;
  std::vector<std::string> close;
  bool always = false;    // the text begins with reasoning, whether a marker says so or not
  bool anywhere = false;  // it may begin, and begin again, after content
  // End the reasoning, too, and belong to the content. What closes it, behind them, is left out.
  std::vector<std::string> ends;
  std::vector<std::string> dropped;  // markers around the content, left out of it
  std::string prefix;                // goes before the content
};

// Sends reasoning to the sink and hands on what is content. One thread.
class ReasoningScan {
 public:
  // `inside`: the prompt has opened the reasoning already.
  ReasoningScan(const ReasoningFormat& format, bool inside);

  // Appends to `content` what is certain to be content.
  void feed(char byte, CallSink* sink, std::string* content);
  void finish(CallSink* sink, std::string* content);

 private:
  enum class State { kStart, kInside, kOutside };

  void start_byte(char byte, CallSink* sink, std::string* content);
  void outside_byte(char byte, std::string* content);

  State state_ = State::kStart;
  MarkerScan open_;
  MarkerScan close_;
  MarkerScan
      outside_;  // what opens the reasoning again, then what is left out, then what closes it
  int num_close_;
  int num_again_;
  int num_left_out_;  // with those before
  bool ended_early_ = false;
  std::string prefix_;
  std::string space_;  // before the opening marker
  bool inside_;
};

}  // namespace foretoken
