#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json_object.h"
#include "base/result.h"

namespace foretoken {

// Typed reads from one JSON object. A field that is missing or null leaves the value as it is. The
// first wrong type is kept in status(). One thread.
class JsonFields {
 public:
  // `object` must outlive this; `what` starts each message.
  JsonFields(const nlohmann::json& object, std::string what);

  // Whether the field is there and not null.
  bool has(const char* name) const;
  // The field as it is, or null. Counts as read.
  const nlohmann::json* raw(const char* name);

  void read(const char* name, bool* value);
  void read(const char* name, int* value);
  void read(const char* name, uint64_t* value);
  void read(const char* name, float* value);
  void read(const char* name, std::string* value);
  void read(const char* name, std::vector<int32_t>* value);
  void read(const char* name, std::vector<std::string>* value);

  void fail(const std::string& message);
  const Status& status() const { return status_; }
  // The first field that nobody asked for, or empty.
  std::string first_unread() const;

 private:
  const nlohmann::json* take(const char* name);
  void wrong_type(const char* name, const char* wanted, const nlohmann::json& got);

  const nlohmann::json& object_;
  std::string what_;
  std::set<std::string> read_;
  Status status_;
};

}  // namespace foretoken
