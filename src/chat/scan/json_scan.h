#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// What a byte means to a value that comes byte by byte.
enum class ScanOutcome {
  kMore,        // belongs to the value
  kDone,        // ends it
  kDoneBefore,  // the value (a number) has ended before this byte
  kFlaw,        // cannot stand here
};

// Follows one JSON value; white space before it belongs to it. Control characters within strings
// are taken, for models forget to escape them; `json_byte` repairs that. Deeper than 256 is a flaw.
class JsonScan {
 public:
  ScanOutcome feed(char byte);
  // Whether the last byte stands within a string.
  bool in_string() const { return mode_ == Mode::kString || mode_ == Mode::kEscape; }
  // Whether quotes and brackets alone can close what has come.
  bool closable() const;
  // Whether the last byte stands within a string that is a value.
  bool in_text() const { return mode_ == Mode::kString && !key_; }
  // The brackets that are open, outermost first.
  const std::string& open_brackets() const { return stack_; }
  // Whether anything but white space has come.
  bool begun() const { return mode_ != Mode::kValue || !stack_.empty(); }

 private:
  enum class Mode {
    kValue,
    kFirstItem,
    kFirstKey,
    kKey,
    kColon,
    kAfter,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kMinus,
    kZero,
    kDigits,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };

  ScanOutcome begin_value(char byte);
  ScanOutcome structure(char byte);
  ScanOutcome string_byte(char byte);
  ScanOutcome number_byte(char byte);
  ScanOutcome open(char bracket);
  ScanOutcome close(char bracket);
  ScanOutcome value_end();

  Mode mode_ = Mode::kValue;
  std::string stack_;  // open brackets
  std::string_view literal_;
  int num_hex_ = 0;
  bool key_ = false;  // the string is a key
};

// A byte of a JSON text, where `in_string` a control character as its escape.
std::string json_byte(char byte, bool in_string);

}  // namespace foretoken
