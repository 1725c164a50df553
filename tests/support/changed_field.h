#pragma once
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"

namespace foretoken::test {

// Gives a field a value that is neither its default nor what it has.
inline void change_field(const EngineField& field, EngineConfig* config) {
  visit_engine_member(field, *config, [](auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value += "other";
    } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
      value.push_back(3);
    } else {
      value += 3;
    }
  });
}

inline void change_field(const DrafterField& field, SpeculativeConfig* drafter) {
  std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (!std::is_same_v<Member, std::monostate>) {
          auto& value = drafter->*member;
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, bool>) {
            value = !value;
          } else if constexpr (std::is_same_v<Value, std::string>) {
            value += "other";
          } else if constexpr (std::is_arithmetic_v<Value>) {
            value += 3;
          } else {
            value.emplace_back();
          }
        }
      },
      field.member);
}

}  // namespace foretoken::test
