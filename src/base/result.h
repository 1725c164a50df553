#pragma once
#include <foretoken/status.h>

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace foretoken {

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    FT_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    FT_CHECK_MSG(ok(), status_.message());
    return *value_;
  }
  const T& value() const& {
    FT_CHECK_MSG(ok(), status_.message());
    return *value_;
  }
  T&& value() && {
    FT_CHECK_MSG(ok(), status_.message());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
inline Status resource_exhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
inline Status aborted(std::string message) { return {StatusCode::kAborted, std::move(message)}; }
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

}  // namespace foretoken

#define FT_CONCAT_INNER(a, b) a##b
#define FT_CONCAT(a, b) FT_CONCAT_INNER(a, b)

// Leaves the function with the status of `expr` unless it is ok.
#define FT_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                             \
    if (::foretoken::Status ft_status = (expr); !ft_status.ok()) return ft_status; \
  } while (0)

// `FT_ASSIGN_OR_RETURN(auto x, f())`: x takes the value, or the function returns the error.
#define FT_ASSIGN_OR_RETURN(lhs, expr) \
  FT_ASSIGN_OR_RETURN_IMPL(FT_CONCAT(ft_result_, __LINE__), lhs, expr)
#define FT_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return tmp.status();            \
  lhs = std::move(tmp).value()
