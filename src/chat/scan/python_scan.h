#pragma once
#include <string>

#include "chat/scan/json_scan.h"

namespace foretoken {

// Follows one Python literal (strings, numbers, True, False, None, lists, tuples, dicts; JSON's
// words too) and writes it as JSON. White space before it is left out. Deeper than 256 is a flaw.
class PythonScan {
 public:
  // Appends to `out` the JSON of what is certain.
  ScanOutcome feed(char byte, std::string* out);

 private:
  enum class Mode { kValue, kFirst, kColon, kAfter, kString, kEscape, kDigits, kWord };

  ScanOutcome structure(char byte, std::string* out);
  ScanOutcome begin_value(char byte, std::string* out);
  ScanOutcome string_byte(char byte, std::string* out);
  ScanOutcome escape_byte(char byte, std::string* out);
  ScanOutcome digit_byte(char byte, std::string* out);
  ScanOutcome word_byte(char byte, std::string* out);
  ScanOutcome close(std::string* out);
  void separate(std::string* out);

  Mode mode_ = Mode::kValue;
  std::string stack_;  // open brackets
  std::string word_;   // a number, a word, or the digits of an escape
  char quote_ = '"';
  char escape_ = 'x';
  bool key_ = false;
  bool comma_ = false;  // one is due before the next item
};

// A whole Python literal as JSON, or "" where the text is none.
std::string python_as_json(const std::string& text);

}  // namespace foretoken
