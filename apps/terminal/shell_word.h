#pragma once
#include <string>

namespace foretoken {

// The text as a shell reads it back as one word: as it is where that does, else in quotes.
std::string shell_word(const std::string& text);

}  // namespace foretoken
