#pragma once
#include <string>

namespace foretoken::test {

// A part of a checked-in file that the program makes: what stands between the line `begin` and the
// line `end`, or the whole file where both are empty.
struct GeneratedPart {
  std::string path;  // from the root of the tree
  std::string begin;
  std::string end;
};

// Fails where the part is not `text`, which ends with a line break. With FORETOKEN_WRITE_GENERATED
// in the environment the part is written instead.
void expect_generated(const GeneratedPart& part, const std::string& text);

}  // namespace foretoken::test
