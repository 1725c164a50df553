#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A family of published models that does not load, as plain data; those that do are the rows of
// architecture.h.
struct RefusedFamily {
  const char* architecture;  // in the `architectures` of a config.json
  const char* description;   // for listings
  uint32_t lacks;            // MissingParts that every model of the family needs
};

std::span<const RefusedFamily> refused_families();
// Null when the name is unknown.
const RefusedFamily* find_refused_family(const std::string& architecture);

// For a config.json of an architecture that loads, which asks for parts that do not.
Status refuse_parts(uint32_t parts, const std::string& where);

// Why a config.json whose architecture is not in the registry does not load, as one sentence that
// names the family where it is known, what it needs by family and by its fields, and how its
// weights are quantised where that is not read either. Unsupported always.
Status refuse_architecture(const std::string& name, const nlohmann::json& config,
                           const std::string& where);

// "; did you mean 'llama'? foretoken inspect --families lists what loads", for messages about a
// name that is none of `known`; the question only where one of these is near.
std::string families_hint(const std::string& name, const std::vector<std::string>& known);

}  // namespace foretoken
