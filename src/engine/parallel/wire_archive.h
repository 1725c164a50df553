#pragma once
#include <foretoken/status.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

// Values as bytes between processes of one version on machines of one byte order. A type names its
// members once, in `fields(archive, value)` (wire_fields.h), for both directions.
namespace foretoken::wire {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// Writes what it is called with.
class Writer {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void put_raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  void put_size(size_t size) { put(static_cast<uint64_t>(size)); }
  template <Plain T>
  void put(const T& value) {
    put_raw(&value, sizeof value);
  }
  void put(const std::string& text) {
    put_size(text.size());
    put_raw(text.data(), text.size());
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put_size(values.size());
    if constexpr (Plain<T>) {
      put_raw(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) put(value);
    }
  }
  template <class T, size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& pair) {
    put(pair.first);
    put(pair.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  void put(const Status& status) {
    put(status.code());
    put(status.message());
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& value) {
    // Fields are listed once, for a value that may change; a writer only looks.
    fields(*this, const_cast<T&>(value));
  }

  std::string bytes_;
};

// Reads into what it is called with, in the order of the writer. Bytes that are missing leave the
// rest as it was, and `status` says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  // Ok where all bytes have been read and none was missing.
  Status status() const {
    if (is_whole_ && rest_.empty()) return {};
    return internal_error("a message between processes is cut off or of another version");
  }

 private:
  bool get_raw(void* data, size_t size) {
    is_whole_ = is_whole_ && size <= rest_.size();
    if (!is_whole_) return false;
    if (size > 0) std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  // Of elements that have at least `least` bytes each, so that nonsense takes no memory.
  size_t get_size(size_t least) {
    uint64_t size = 0;
    get(size);
    is_whole_ = is_whole_ && size <= rest_.size() / least;
    return is_whole_ ? static_cast<size_t>(size) : 0;
  }
  template <Plain T>
  void get(T& value) {
    T read{};
    if (get_raw(&read, sizeof read)) value = read;
  }
  void get(std::string& text) {
    text.resize(get_size(1));
    get_raw(text.data(), text.size());
  }
  template <class T>
  void get(std::vector<T>& values) {
    if constexpr (Plain<T>) {
      values.resize(get_size(sizeof(T)));
      get_raw(values.data(), values.size() * sizeof(T));
    } else {
      values.resize(get_size(1));
      for (T& value : values) get(value);
    }
  }
  template <class T, size_t N>
  void get(std::array<T, N>& values) {
    for (T& value : values) get(value);
  }
  template <class A, class B>
  void get(std::pair<A, B>& pair) {
    get(pair.first);
    get(pair.second);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    value.reset();
    if (has_value && is_whole_) get(value.emplace());
  }
  void get(Status& status) {
    StatusCode code = StatusCode::kOk;
    std::string message;
    get(code);
    get(message);
    status = code == StatusCode::kOk ? Status() : Status(code, std::move(message));
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& value) {
    fields(*this, value);
  }

  std::string_view rest_;
  bool is_whole_ = true;
};

}  // namespace foretoken::wire
