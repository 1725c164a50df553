#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A value of a pickle. Values name each other by index, as Python's do by reference, so that a
// value may hold itself.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInteger,
    kFloat,
    kText,
    kList,        // a list, tuple or set
    kDict,        // also an OrderedDict
    kGlobal,      // a function or class, by name alone
    kPersistent,  // what the pickle calls by an id of its writer's: items[0]
    kCall,        // items[0] called with items[1]; nothing is
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;               // kInteger; kBool: 0 or 1
  double number = 0;                 // kFloat
  std::string text = {};             // kText; kGlobal: "module.name"
  std::vector<uint32_t> items = {};  // kList: elements; kDict: key, value, key, value, ...
};

// Python's pickles (protocols 2 to 5) as data. Nothing of them is ever run: a global is its name,
// and one that `allows` does not know ends the reading, as do classes with states, extension codes
// and buffers outside of the pickle.
class Pickle {
 public:
  using Allows = bool (*)(std::string_view global);

  // Reads one pickle from the beginning of `bytes`. `where` begins the messages; Unsupported names
  // a global that is not allowed.
  static Result<Pickle> read(std::span<const std::byte> bytes, Allows allows,
                             const std::string& where);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& at(uint32_t index) const { return values_[index]; }
  uint32_t num_values() const { return static_cast<uint32_t>(values_.size()); }
  size_t num_bytes() const { return num_bytes_; }

 private:
  friend class PickleMachine;
  std::vector<PickleValue> values_;
  uint32_t root_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace foretoken
