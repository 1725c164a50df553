#pragma once
#include <string>
#include <string_view>

#include "chat/scan/json_scan.h"

namespace foretoken {

// Lets the text of one JSON object through so that what has been given out can always be closed:
// keys wait for their values, words and escapes for their ends, halves of surrogate pairs become
// U+FFFD. Nothing comes through behind the object's end or behind a byte that cannot stand there.
class JsonRepair {
 public:
  // What of `text`, and of what waited, may be given out.
  std::string feed(std::string_view text);
  // What makes everything given out so far one whole object: "{}" where nothing was.
  std::string finish() const;

 private:
  JsonScan scan_;
  std::string held_;
  bool begun_ = false;
  bool ended_ = false;    // nothing more comes through
  bool whole_ = false;    // the object is complete
  bool in_text_ = false;  // what was given out ends within a string
};

}  // namespace foretoken
