#pragma once
#include <Python.h>
#include <foretoken/request.h>

#include <memory>

namespace foretoken::python {

// A logits processor that calls `callable(prompt_ids, output_ids, logits)`: two lists of ids, and a
// bytearray of floats that it changes in place. Takes the GIL on the engine's thread for the call;
// what it raises ends the request. Engines drop requests on threads that must not wait for the GIL,
// so the callable is kept for release_dropped_callables. Needs the GIL.
std::shared_ptr<const LogitsProcessor> make_processor(PyObject* callable);

// Gives back callables whose requests are gone. Needs the GIL.
void release_dropped_callables();

}  // namespace foretoken::python
