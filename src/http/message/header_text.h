#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::http {

// Names of headers are equal in any case (ASCII).
bool same_name(std::string_view a, std::string_view b);

// Without blanks (space, tab, CR, LF) at both ends.
std::string_view trimmed(std::string_view text);

// The members of a comma-separated list, trimmed, empty ones left out.
std::vector<std::string> split_list(std::string_view text);

// Whether a comma-separated list has `member`, in any case.
bool list_has(std::string_view list, std::string_view member);

bool is_utf8(std::string_view text);

// A header's name or value made safe to send: control characters become spaces, so that no value
// can begin a new line.
std::string header_safe(std::string_view text);

}  // namespace foretoken::http
