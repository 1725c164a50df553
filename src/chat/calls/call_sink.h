#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/chat_parser.h"
#include "chat/scan/json_repair.h"

namespace foretoken {

// A function's name is at most so long, in bytes.
inline constexpr size_t kMaxNameLen = 256;

enum class CallIdStyle { kUuid, kMistral };

// "chatcmpl-tool-" and 32 hexadecimal digits, or Mistral's nine letters and digits.
std::string make_tool_call_id(CallIdStyle style);

// Collects what a parser found, numbers the calls and decides about white space beside them. What
// it gives out of a call's arguments becomes one JSON object in the end, whatever came. One thread.
class CallSink {
 public:
  struct Options {
    CallIdStyle id_style = CallIdStyle::kUuid;
    bool parallel_tool_calls = true;  // false: calls after the first are dropped
    bool drop_space = false;          // white space before, between and after calls
    std::vector<std::string> names;   // of the functions that exist
  };

  explicit CallSink(Options options) : options_(std::move(options)) {}

  void reasoning(std::string_view text);
  void content(std::string_view text);
  // Ends the call before. `id`: what the model calls it; empty: a new one.
  void begin_call(const std::string& name, const std::string& id = {});
  // A piece of the JSON text of the call's arguments.
  void arguments(std::string_view text);
  // Closes the call's arguments where they are open; content and reasoning do so, too.
  void end_call();
  // At the end of the text.
  void finish();

  bool knows(const std::string& name) const;
  int num_calls() const { return num_calls_; }
  // What came since the last take.
  std::vector<ChatPiece> take();

 private:
  void append(ChatPiece::Kind kind, std::string_view text);

  Options options_;
  std::vector<ChatPiece> pieces_;
  std::string held_space_;
  std::optional<JsonRepair> arguments_;  // of the call that is open
  bool has_content_ = false;             // other than white space, since the last call
  int num_calls_ = 0;
};

}  // namespace foretoken
