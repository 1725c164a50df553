#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// Whether JSON text has escapes of surrogates (\uD800 to \uDFFF), of pairs or of halves.
bool may_have_half_pairs(std::string_view json);

// JSON text in which escapes of half a surrogate pair are those of U+FFFD: programs that cut texts
// between the halves of a character write them, and again with each later turn of a conversation.
std::string without_half_pairs(std::string_view json);

}  // namespace foretoken
