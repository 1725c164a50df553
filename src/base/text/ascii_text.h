#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// Without the blanks, tabs and line breaks around it.
std::string trimmed_text(std::string_view text);

// With small letters in the place of A to Z; all other bytes stay.
std::string lower_case(std::string_view text);

}  // namespace foretoken
