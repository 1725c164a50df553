#pragma once
#include <foretoken/chat_template.h>

#include <nlohmann/json.hpp>

namespace foretoken {

// Tool calls and results of earlier turns, brought into the form that a template takes. Each works
// on a whole conversation and leaves alone what the template takes as it is.

// Arguments as an object or as JSON text. None are {}; what is no JSON object is kept as it is
// where text is taken, and as {"raw_arguments": TEXT} elsewhere.
void fit_call_arguments(nlohmann::ordered_json& messages, const ChatTemplateTraits& traits);

// Ids where the template needs them, of nine letters and digits where it takes no others.
void fit_call_ids(nlohmann::ordered_json& messages, const ChatTemplateTraits& traits);

// An answer with several calls as several answers, each followed by its results.
void split_parallel_calls(nlohmann::ordered_json& messages);

// The content beside calls: null, "" or none.
void fit_content_beside_calls(nlohmann::ordered_json& messages, const ChatTemplateTraits& traits);

// Calls as text of the assistant, and results as text of the user, as llama.cpp writes them.
void write_calls_as_text(nlohmann::ordered_json& messages);
void write_results_as_text(nlohmann::ordered_json& messages);

}  // namespace foretoken
