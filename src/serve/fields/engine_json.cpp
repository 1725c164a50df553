#include "serve/fields/engine_json.h"

#include <type_traits>

namespace foretoken {

void read_engine_field(JsonFields& fields, const EngineField& field, EngineConfig* config) {
  visit_engine_member(field, *config, [&](auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) {
      auto number = static_cast<uint64_t>(value);
      fields.read(field.name, &number);
      value = static_cast<int64_t>(number);
    } else {
      fields.read(field.name, &value);
    }
  });
}

}  // namespace foretoken
