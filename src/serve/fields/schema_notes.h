#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Adds to `warnings` what the schemas of a form say and the engine will not enforce, unless the
// form is strict: "'response_format': 'uniqueItems' at $.tags is not enforced". InvalidArgument
// where nothing of a schema can be enforced. Messages start with `name`.
Status note_schemas(const StructuredOutputs& form, const std::string& name,
                    std::vector<std::string>* warnings);

// The same for the parameters of functions that a choice (as in ChatParserOptions) forces a call
// of, or that are strict where it is "auto". `tools` has passed check_tools().
Status note_tool_schemas(const nlohmann::ordered_json& tools, const std::string& choice,
                         std::vector<std::string>* warnings);

}  // namespace foretoken
