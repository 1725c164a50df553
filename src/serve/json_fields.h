#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
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
  JsonFields(const nlohmann::json& object, std::string what) = delete;
  // `object` must outlive this; `what`, unless empty, starts each message.
  JsonFields(const nlohmann::ordered_json& object, std::string what);

  // Whether the field is there and not null.
  bool has(const char* name) const;
  // The field as it is, or null. Counts as read.
  const nlohmann::ordered_json* raw(const char* name);

  void read(const char* name, bool* value);
  void read(const char* name, int* value);
  void read(const char* name, uint64_t* value);
  void read(const char* name, float* value);
  void read(const char* name, double* value);
  void read(const char* name, std::string* value);
  void read(const char* name, std::vector<int32_t>* value);
  void read(const char* name, std::vector<double>* value);
  void read(const char* name, std::vector<std::string>* value);

  template <class T>
  void read(const char* name, std::optional<T>* value) {
    T given{};
    if (!has(name)) return static_cast<void>(take(name));
    read(name, &given);
    if (status_.ok()) *value = std::move(given);
  }

  // Whether a value is an integer from 0 up; 3.0 is one.
  static bool is_count(const nlohmann::ordered_json& value);

  // Names that may stand there without effect.
  void ignore(std::initializer_list<const char*> names);
  // An error for each of `names` that is there: it is known, but this build does not have it.
  void refuse_later(std::initializer_list<const char*> names);
  // An error for the first field that nobody asked for, with the nearest name that somebody did.
  void refuse_unread();

  void fail(const std::string& message);
  void wrong_type(const char* name, const char* wanted, const nlohmann::ordered_json& got);
  const Status& status() const { return status_; }
  // The first field that nobody asked for.
  std::optional<std::string> first_unread() const;

 private:
  const nlohmann::ordered_json* take(const char* name);

  const nlohmann::ordered_json& object_;
  std::string what_;
  std::set<std::string> read_;
  Status status_;
};

}  // namespace foretoken
