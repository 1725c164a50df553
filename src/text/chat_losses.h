#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What a conversation holds and its prompt lacks: a sentence for each kind of thing. Contents, the
// names and arguments of calls, and of the `variables` of the template (an object, or null) the
// names of its "tools" and the texts of its "documents" are looked for; reasoning of earlier turns
// is not, since templates leave it out on purpose. `render` makes the
// prompt of other messages of the same shape: words that are not found, or too short to be sure of,
// are replaced by words that no template has.
std::vector<std::string> find_losses(
    const nlohmann::ordered_json& messages, const nlohmann::ordered_json& variables,
    std::string_view prompt,
    const std::function<Result<std::string>(const nlohmann::ordered_json& messages)>& render);

}  // namespace foretoken
