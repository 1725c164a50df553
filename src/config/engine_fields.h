#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/engine_field.h"

namespace foretoken {

// Every field of EngineConfig and ParallelConfig that is a value, by groups. What is none has its
// own readers: drafters (draft/registry.h), adapters, and what the caller is called with.
std::span<const EngineField> engine_fields();

// Null: there is none of this name.
const EngineField* find_engine_field(std::string_view name);

// "--max-num-seqs".
std::string engine_flag(const EngineField& field);

// The value of a field as text: 1 or 0 for flags, "1,2" for lists.
std::string engine_field_text(const EngineField& field, const EngineConfig& config);

// Gives `to` the value that `from` has.
void copy_engine_field(const EngineField& field, const EngineConfig& from, EngineConfig* to);

// The words between '|'.
std::vector<std::string> field_choices(const char* choices);

// Whether the field has its default, and that stands for an automatic choice.
bool is_automatic(const EngineField& field, const EngineConfig& config);

// Gives fields whose rows say so the nearest value that there is; a sentence for each that changes:
// "--block-size 128: 64 is used, the nearest that there is".
std::vector<std::string> take_nearest(EngineConfig* config);

// The range or the choices of one field, or of all. InvalidArgument names the flag, the value and
// what it can be.
Status check_engine_field(const EngineField& field, const EngineConfig& config);
Status check_engine_fields(const EngineConfig& config);

}  // namespace foretoken
