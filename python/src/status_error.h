#pragma once
#include <foretoken/status.h>

namespace foretoken::python {

// Raises the Python exception of a failed call: ValueError (invalid argument), FileNotFoundError,
// NotImplementedError (unsupported), MemoryError (exhausted) or RuntimeError. Command-line flags in
// the message become names of keyword arguments. Nothing happens for ok. Needs the GIL.
void raise_if_error(const Status& status);

}  // namespace foretoken::python
