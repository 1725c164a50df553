#pragma once
#include <foretoken/chat_template.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace foretoken {

// The prompt of `messages`, with the variables `arguments`; none where the template refuses them.
using ProbeRender = std::function<std::optional<std::string>(
    const nlohmann::ordered_json& messages, const nlohmann::ordered_json& arguments)>;

// What a template can do; `source` is left empty. Renders about 30 conversations of a few words.
ChatTemplateTraits probe_chat_traits(const ProbeRender& render);

}  // namespace foretoken
