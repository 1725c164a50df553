#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/engine_field.h"

namespace foretoken {

using DrafterMember =
    std::variant<std::monostate, bool SpeculativeConfig::*, int SpeculativeConfig::*,
                 double SpeculativeConfig::*, std::string SpeculativeConfig::*,
                 std::vector<double> SpeculativeConfig::*,
                 std::vector<DraftSchedule> SpeculativeConfig::*>;

// One field of an entry of --speculative-config. Fields of one method alone stand in its row of
// draft/registry.h.
struct DrafterField {
  const char* name;
  DrafterMember
      member;  // nothing: a word of vLLM's for what other fields say, or what always holds
  const char* help;
  const char* choices = "";     // "adaptive|fixed|off"; others are unknown
  bool is_engine_wide = false;  // of all drafters; given once
  FieldAgreement agreement = FieldAgreement::kValue;
  bool is_of_files = true;  // says nothing to a drafter that reads none, unless it is engine-wide
};

std::span<const DrafterField> drafter_fields();

// Null: there is none of this name.
const DrafterField* find_drafter_field(std::string_view name);

// The value of a field as text; empty for one without a member.
std::string drafter_field_text(const DrafterField& field, const SpeculativeConfig& drafter);

// A field of vLLM's speculative config that this engine does not act on.
struct RefusedDrafterField {
  const char* name;
  const char* harmless;  // JSON of the value that asks for nothing
  const char* why;       // behind the name: "is not built yet; remove it"
  bool warned = false;   // other values have no effect, with a warning; otherwise an error
};

std::span<const RefusedDrafterField> refused_drafter_fields();

}  // namespace foretoken
