#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/tool_parser.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {

// The text around calls, for parsers whose calls begin with a marker: looks for the markers, and
// knows what becomes of text that was held for a call. Markers that stand around a call, and one
// that the end of the text leaves without a call, are left out; others are content, like all text
// that is no call. One thread.
class MarkedCalls : public ToolParser {
 public:
  void feed(char byte, CallSink* sink) final;
  void finish(CallSink* sink) final;

 protected:
  struct Markers {
    std::vector<std::string> open;    // begin a call or several
    std::vector<std::string> stray;   // end a call or several
    std::vector<std::string> enders;  // end what is passed over, beside those above
  };

  explicit MarkedCalls(const Markers& markers);

  // The opening marker of this number has come.
  virtual void opened(int number, CallSink* sink) = 0;
  // Whether a call may begin with this byte where no other text stands before it; if so, it has
  // begun, and the byte is in held_.
  virtual bool opened_bare(char byte, CallSink* sink);
  // A byte since then, which is in held_ already.
  virtual void inside(char byte, CallSink* sink) = 0;
  // The text has ended there; calls leave() or give_back().
  virtual void cut(CallSink* sink) = 0;

  // The call is complete; the next byte is text.
  void leave();
  // No call after all, or none any more: what is held is text.
  void give_back(CallSink* sink);
  // The call has begun and is broken: what is held, and comes before the next marker, belongs to
  // it. It is content only where no marker comes.
  void pass_over(CallSink* sink);

  std::string held_;          // what has come inside and has not gone to the sink
  bool bare_allowed_ = true;  // only white space has come

 private:
  enum class State { kText, kInside, kPassing };

  void text_byte(char byte, CallSink* sink);
  bool begin_bare(char byte, CallSink* sink);
  void passing_byte(char byte, CallSink* sink);
  void enter(int number, CallSink* sink);
  void text(std::string_view text, CallSink* sink);
  bool has_call(const CallSink& sink) const { return sink.num_calls() > calls_before_; }

  int num_open_;
  MarkerScan markers_;
  MarkerScan passing_;
  std::string passed_;
  State state_ = State::kText;
  std::string marker_;        // that opened what is held; empty: none did
  int calls_before_ = 0;      // in the sink, when it did
  bool is_closed_ = true;     // the last call is complete
  bool has_content_ = false;  // other than white space, since then
  bool is_cut_ = false;       // the end of the text has come
};

}  // namespace foretoken
