#pragma once
#include <string>

#include "chat/calls/json_calls.h"
#include "chat/calls/tool_parser.h"

namespace foretoken {

// The list of {"name", "parameters"} that tool_choice "required" forces.
std::unique_ptr<ToolParser> make_required_calls();

// The arguments of the one function that tool_choice names. Text that is no object is content.
class NamedCall : public ToolParser {
 public:
  explicit NamedCall(std::string name) : name_(std::move(name)) {}

  void feed(char byte, CallSink* sink) override;
  void finish(CallSink*) override {}

 private:
  enum class State { kStart, kArguments, kRest };

  std::string name_;
  State state_ = State::kStart;
  JsonScan arguments_;
};

}  // namespace foretoken
