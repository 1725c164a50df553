#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace foretoken {

// How doors read and show a value beyond its C++ type.
enum class FieldForm : uint8_t {
  kPlain,
  kCount,       // a number with a suffix on the command line: 4k, 1M
  kLength,      // the same, or "auto", which is -1
  kListed,      // a text; `choices` are some of its values
  kChoice,      // one of `choices`
  kDtype,       // a text of `choices`; Python takes types of torch as well
  kJson,        // text of a JSON object; Python takes a dict
  kFile,        // a path
  kNewFile,     // a path of a file that need not exist, in a folder that does
  kFolder,      // a path
  kModel,       // a folder or a Hub id
  kTemplate,    // a file, or the text itself
  kFolderOrOff  // a path, or "off" for none
};

// What all ranks of an engine must have alike.
enum class FieldAgreement : uint8_t {
  kNone,
  kValue,        // the value
  kDigest,       // the value, told by its digest, since it is long
  kModelConfig,  // the config.json that the path leads to
  kFileText,     // what the file holds
};

// Who may set a field. What is C++ alone has no door.
enum FieldDoor : uint8_t {
  kProgramOnly = 0,
  kCommandLine = 1,
  kPython = 2,
  kEveryDoor = kCommandLine | kPython,
  kOfflineCommands = 4,  // those of the command line that serve nobody
  kOffline = kPython | kOfflineCommands,
};

// Bounds of a number, both included; of a double `low` itself is left out.
struct FieldRange {
  int64_t low = 0;
  int64_t high = INT64_MAX;
};

using EngineMember =
    std::variant<bool EngineConfig::*, int EngineConfig::*, int64_t EngineConfig::*,
                 uint64_t EngineConfig::*, double EngineConfig::*, std::string EngineConfig::*,
                 std::vector<int> EngineConfig::*, bool ParallelConfig::*, int ParallelConfig::*,
                 std::string ParallelConfig::*>;

// One field of EngineConfig: all that the command line, Python, ranks and documents know of it.
struct EngineField {
  const char* name;  // of the member, in JSON and in Python; the flag is "--" and dashes
  EngineMember member;
  const char* group;  // heading of help and documents
  const char* help;
  // What the default value stands for where it is none that a user would give: "as the model
  // allows". It is in no range. Null: the default is a value like others.
  const char* automatic = nullptr;
  FieldForm form = FieldForm::kPlain;
  const char* choices = "";  // "auto|float32|bfloat16"
  FieldRange range = {};
  FieldAgreement agreement = FieldAgreement::kNone;
  FieldDoor doors = kEveryDoor;
  // Of a whole number: any that is not below the range is taken, and the engine uses the one of
  // `choices`, or of the range, that is nearest to it (take_nearest).
  bool nearest = false;
};

// Calls f with the member of `config`, which may be const.
template <class Config, class F>
void visit_engine_member(const EngineField& field, Config& config, F&& f) {
  std::visit(
      [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), Config&>) {
          f(config.*member);
        } else {
          f(config.parallel.*member);
        }
      },
      field.member);
}

}  // namespace foretoken
