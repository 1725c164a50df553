#include "python_processor.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace foretoken::python {
namespace {

namespace nb = nanobind;

// References that wait for a thread with the GIL. Never destroyed: engines may outlive statics.
struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> callables;
};

Dropped& dropped() {
  static auto* const list = new Dropped();
  return *list;
}

nb::list list_of(std::span<const int32_t> ids) {
  nb::list list;
  for (const int32_t id : ids) list.append(id);
  return list;
}

class PythonProcessor : public LogitsProcessor {
 public:
  explicit PythonProcessor(PyObject* callable) : callable_(Py_NewRef(callable)) {}
  ~PythonProcessor() override {
    std::lock_guard lock(dropped().mutex);
    dropped().callables.push_back(callable_);
  }

  void apply(const LogitsContext& context, std::span<float> logits) const override {
    const nb::gil_scoped_acquire gil;
    std::string fault;
    try {
      call(context, logits);
      return;
    } catch (const nb::python_error& error) {
      fault = nb::cast<std::string>(error.type().attr("__name__")) + ": " +
              nb::str(error.value()).c_str();
    }
    throw std::runtime_error("a logits processor failed: " + fault);
  }

 private:
  // The callable gets a copy, so that it may keep it.
  void call(const LogitsContext& context, std::span<float> logits) const {
    const auto num_bytes = static_cast<Py_ssize_t>(logits.size_bytes());
    const nb::object row = nb::steal(
        PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(logits.data()), num_bytes));
    if (!row.is_valid()) throw nb::python_error();
    const nb::handle callable = callable_;
    callable(list_of(context.prompt_ids), list_of(context.output_ids), row);
    if (PyByteArray_Size(row.ptr()) != num_bytes) {
      throw std::runtime_error("a logits processor changed the number of logits");
    }
    std::memcpy(logits.data(), PyByteArray_AsString(row.ptr()), logits.size_bytes());
  }

  PyObject* callable_;
};

}  // namespace

std::shared_ptr<const LogitsProcessor> make_processor(PyObject* callable) {
  return std::make_shared<PythonProcessor>(callable);
}

void release_dropped_callables() {
  std::vector<PyObject*> callables;
  {
    std::lock_guard lock(dropped().mutex);
    callables.swap(dropped().callables);
  }
  for (PyObject* callable : callables) Py_DECREF(callable);
}

}  // namespace foretoken::python
