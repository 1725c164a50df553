#include "status_error.h"

#include <nanobind/nanobind.h>

#include <cctype>

namespace foretoken::python {
namespace {

namespace nb = nanobind;

PyObject* exception_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return PyExc_ValueError;
    case StatusCode::kNotFound:
      return PyExc_FileNotFoundError;
    case StatusCode::kUnsupported:
      return PyExc_NotImplementedError;
    case StatusCode::kResourceExhausted:
      return PyExc_MemoryError;
    default:
      return PyExc_RuntimeError;
  }
}

bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool is_flag_char(char c) {
  return is_lower(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
}

}  // namespace

std::string with_keyword_names(const std::string& message) {
  std::string text;
  for (size_t i = 0; i < message.size();) {
    const bool flag = message.compare(i, 2, "--") == 0 && i + 2 < message.size() &&
                      is_lower(message[i + 2]) && (i == 0 || !is_flag_char(message[i - 1]));
    if (!flag) {
      text += message[i++];
      continue;
    }
    for (i += 2; i < message.size() && is_flag_char(message[i]); ++i) {
      text += message[i] == '-' ? '_' : message[i];
    }
  }
  return text;
}

void raise_if_error(const Status& status) {
  if (status.ok()) return;
  PyErr_SetString(exception_of(status.code()), with_keyword_names(status.message()).c_str());
  throw nb::python_error();
}

}  // namespace foretoken::python
