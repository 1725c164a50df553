#pragma once
#include <foretoken/chat_template.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foretoken {

// Roles of a conversation, brought into the order that a template takes. Each leaves alone what the
// template takes as it is; `warnings` are told what stands elsewhere than it was sent.

// Role "developer" as "system", several instructions at the beginning as one, those of a template
// without a system role put before the first question, and late ones made part of the question or
// the results beside them: agents tell something in each turn, and what stands before it is found
// in the prefix cache.
void fit_instructions(nlohmann::ordered_json& messages, const ChatTemplateTraits& traits,
                      std::vector<std::string>* warnings);

// Puts an empty question before a conversation that begins with an answer, such as a greeting: a
// template whose roles must alternate begins with a question.
void begin_with_question(nlohmann::ordered_json& messages, std::vector<std::string>* warnings);

// Puts an empty question behind the instructions of a conversation that has none at all: histories
// that were cut, and instructions alone. False: there is one, and nothing changes.
bool add_question(nlohmann::ordered_json& messages);

// Neighbours that are both questions, or both answers without calls, as one.
void merge_repeated_roles(nlohmann::ordered_json& messages);

}  // namespace foretoken
