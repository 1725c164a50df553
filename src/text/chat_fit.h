#pragma once
#include <foretoken/chat_template.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A conversation in the forms that a template takes: contents as texts or parts by role, arguments
// and ids of calls, the order of roles. What it takes as it was sent stays so. `warnings` are told
// what stands elsewhere, or in other words. kInvalidArgument where a part that is no text has to
// become one.
Result<nlohmann::ordered_json> fit_conversation(nlohmann::ordered_json messages,
                                                const ChatTemplateTraits& traits,
                                                std::vector<std::string>* warnings);

// The traits of a template that takes nothing but questions and answers in turns: the last resort
// where one refuses a conversation.
ChatTemplateTraits least_traits(ChatTemplateTraits traits);

}  // namespace foretoken
