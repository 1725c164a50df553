#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files/json_object.h"
#include "base/result.h"

namespace foretoken {

// What becomes of fields that are not followed: an error where `warnings` is null, else a sentence
// there.
struct FieldNotes {
  std::vector<std::string>* warnings = nullptr;

  // Tells of one; the error where nobody takes warnings.
  Status tell(const std::string& sentence) const;
};

// Typed reads from one JSON object. A field that is missing or null leaves the value as it is.
// Numbers and flags may come in the forms of lax_values.h. The first wrong type is kept in
// status(). One thread.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string what, FieldNotes notes = {}) = delete;
  // `object` and what `notes` names must outlive this; `what`, unless empty, starts each message.
  JsonFields(const nlohmann::ordered_json& object, std::string what, FieldNotes notes = {});

  // From now on the fields of `values` stand for those of their names; null: for none.
  void stand_in(nlohmann::ordered_json values) { stand_ins_.update(std::move(values)); }
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

  // Whether a value is a JSON number that is an integer from 0 up; 3.0 is one.
  static bool is_count(const nlohmann::ordered_json& value);
  // An integer from 0 up, in any form that is read as one.
  static std::optional<uint64_t> count_of(const nlohmann::ordered_json& value);

  // Names that may stand there without effect.
  void ignore(std::initializer_list<const char*> names);
  // A field that is known and means nothing here, and what to do instead: "give 'input'".
  struct Refused {
    const char* name;
    const char* instead;
  };
  // An error for each of them that asks for something.
  void refuse(std::initializer_list<Refused> fields);
  // A warning for each of them, as above.
  void pass_over(std::initializer_list<const char*> names);
  // The same for fields in which vLLM's servers and their routers tell each other what was computed
  // elsewhere, or what to do with images, and for what plug-ins read.
  void pass_over_vllms();
  // An error for the first field that nobody asked for, with the nearest name that somebody did.
  void refuse_unread();
  // A warning for each of them, or that error, as the notes have it.
  void check_unread();

  // A sentence about what is not followed; an error where nobody takes warnings.
  void warn(const std::string& sentence);
  const FieldNotes& notes() const { return notes_; }
  void fail(const std::string& message);
  void wrong_type(const char* name, const char* wanted, const nlohmann::ordered_json& got);
  const Status& status() const { return status_; }
  // The first field that nobody asked for.
  std::optional<std::string> first_unread() const;

 private:
  const nlohmann::ordered_json* find(const char* name) const;
  const nlohmann::ordered_json* take(const char* name);
  bool asks_for_something(const char* name) const;
  std::string unknown(const std::string& name, const char* otherwise) const;

  const nlohmann::ordered_json& object_;
  nlohmann::ordered_json stand_ins_ = nlohmann::ordered_json::object();
  std::string what_;
  FieldNotes notes_;
  std::set<std::string> read_;
  Status status_;
};

}  // namespace foretoken
