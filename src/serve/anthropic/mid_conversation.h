#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// What a conversation changes on its way.
struct Directives {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // without the changes
  nlohmann::ordered_json added = nlohmann::ordered_json::array();     // tools, as "tools" has them
  std::set<std::string> withdrawn;  // names of tools that are not offered at the end
  std::string effort;               // of the turn that is to be answered; empty: not said
};

// Whether any of "messages" has a block "mid_conv_system", "tool_addition" or "tool_removal", or
// says "clear_at" or "output_config".
bool has_directives(const nlohmann::ordered_json& messages);

// Reads them. Instructions are messages of the role "system" in their places; those that hold until
// the next question are gone behind one. Tools of MCP servers, which do not run here, are told in
// `notes`. InvalidArgument names the message.
Result<Directives> read_directives(const nlohmann::ordered_json& messages, const FieldNotes& notes);

}  // namespace foretoken
