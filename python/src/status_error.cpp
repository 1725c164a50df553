#include "status_error.h"

#include <nanobind/nanobind.h>

#include "config/engine_names.h"

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

}  // namespace

void raise_if_error(const Status& status) {
  if (status.ok()) return;
  PyErr_SetString(exception_of(status.code()), with_field_names(status.message()).c_str());
  throw nb::python_error();
}

}  // namespace foretoken::python
