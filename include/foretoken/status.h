#pragma once
#include <string>
#include <utility>

namespace foretoken {

// Why a call failed. The names follow the usual RPC vocabulary.
enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's input is wrong; the message says what to change
  kNotFound,           // a file, model or name does not exist
  kUnsupported,        // valid, but this build or device cannot do it
  kResourceExhausted,  // memory, KV blocks or queue places are used up
  kAborted,            // ended on the caller's wish or at shutdown
  kInternal,           // a defect or a device failure
};

// Outcome of a call that has no value. An ok status carries no message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // One sentence that names the thing at fault and the remedy.
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

}  // namespace foretoken
