#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace foretoken {

// From now on every line of the log is a JSON object {"time", "level", "message"}; "time" is UTC
// (ISO 8601, milliseconds). After init_logging, before other threads log.
void use_json_logs();

// One line of the log about an event: the message, then its fields, as members of the object or as
// " name=value". `fields` is an object. Any thread.
void log_event(std::string_view message, const nlohmann::ordered_json& fields);

}  // namespace foretoken
