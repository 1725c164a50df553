#pragma once
#include "config/engine_fields.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// Reads the field of a row's name, in any form that JsonFields takes.
void read_engine_field(JsonFields& fields, const EngineField& field, EngineConfig* config);

}  // namespace foretoken
