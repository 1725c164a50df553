#include <foretoken/version.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/embedding_score.h"
#include "base/log.h"
#include "bind_records.h"
#include "config/engine_names.h"
#include "engine_handle.h"
#include "output_inbox.h"
#include "python_processor.h"
#include "request_fields.h"
#include "status_error.h"

namespace foretoken::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// Python's share of an inbox. Held by value, so that callbacks of the output thread own the inbox
// itself and never touch a Python object.
struct Inbox {
  std::shared_ptr<OutputInbox> shared = std::make_shared<OutputInbox>();
};

std::vector<Update> take(const Inbox& inbox) {
  release_dropped_callables();
  const nb::gil_scoped_release no_gil;
  return inbox.shared->take();
}

bool wait(const Inbox& inbox, int timeout_ms) {
  bool ready = false;
  {
    const nb::gil_scoped_release no_gil;
    ready = inbox.shared->wait(timeout_ms);
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return ready;
}

void bind_inbox(nb::module_& module) {
  nb::class_<Inbox>(module, "OutputInbox", "Carries outputs from an engine to Python.")
      .def(nb::init<>())
      .def("take", &take, "What came since the last call.")
      .def_prop_ro(
          "fd", [](const Inbox& inbox) { return inbox.shared->fd(); },
          "Readable while there is something to take.")
      .def("wait", &wait, "timeout_ms"_a,
           "Waits until there is something to take; signals are handled.");
}

std::string submit(EngineHandle& engine, const Inbox& inbox, uint64_t key, bool final_only,
                   const std::string& fields, std::vector<int32_t> prompt_token_ids,
                   const std::vector<nb::object>& processors) {
  Result<Request> request = read_request(fields);
  raise_if_error(request.status());
  release_dropped_callables();
  request.value().prompt_token_ids = std::move(prompt_token_ids);
  for (const nb::object& callable : processors) {
    request.value().sampling.logits_processors.push_back(make_processor(callable.ptr()));
  }
  return engine.submit(inbox.shared, key, final_only, std::move(request).value());
}

// Whether the value is refused, and why it is or has no effect: nothing where it asks for nothing.
std::pair<bool, std::string> judge(const std::string& name, const std::string& value,
                                   const std::string& model) {
  const VllmName* row = find_vllm_name(name, kPython);
  if (row == nullptr) return {true, "it is no engine argument"};
  const NameVerdict verdict = judge_vllm_name(*row, value, model);
  if (verdict == NameVerdict::kHarmless) return {};
  return {verdict == NameVerdict::kRefused, with_field_names(row->why)};
}

std::vector<std::string> names_of_vllm() {
  std::vector<std::string> names;
  for (const VllmName& row : vllm_names()) {
    if ((row.doors & kPython) != 0) names.emplace_back(row.name);
  }
  return names;
}

std::vector<std::string> compiler_fields() {
  return {vllm_compiler_fields().begin(), vllm_compiler_fields().end()};
}

void bind_arguments(nb::module_& module) {
  module.attr("NO_COMPILER") = kNoCompiler;
  module.def("compiler_fields", &compiler_fields,
             "Fields of vLLM's compilation config that have no effect.");
  module.def("vllm_names", &names_of_vllm,
             "vLLM's engine arguments that this engine does not act on.");
  module.def("judge_vllm_name", &judge, "name"_a, "value"_a, "model"_a,
             "Whether the value of one of them is refused, and why, or why it has no effect.");
}

void bind_engine(nb::module_& module) {
  nb::class_<EngineHandle>(module, "Engine", "One engine; see foretoken.LLM.")
      .def_static("make", &EngineHandle::make, "config_json"_a)
      .def("submit", &submit, "inbox"_a, "key"_a, "final_only"_a, "fields"_a, "prompt_token_ids"_a,
           "processors"_a)
      .def("abort", &EngineHandle::abort, "request_id"_a)
      .def("sleep", &EngineHandle::sleep, "level"_a, "ends_requests"_a)
      .def("wake_up", &EngineHandle::wake_up, "tags"_a)
      .def("is_sleeping", &EngineHandle::is_sleeping)
      .def("load_adapter", &EngineHandle::load_adapter, "name"_a, "path"_a, "base_model_name"_a,
           "replace"_a)
      .def("close", &EngineHandle::close)
      .def_prop_ro("closed", &EngineHandle::closed)
      .def("encode", &EngineHandle::encode, "text"_a, "add_special_tokens"_a)
      .def("decode", &EngineHandle::decode, "ids"_a, "skip_special_tokens"_a)
      .def("render_chat", &EngineHandle::render_chat, "messages_json"_a, "arguments_json"_a,
           "chat_template"_a)
      .def("special_tokens", &EngineHandle::special_tokens)
      .def("default_sampling_params", &EngineHandle::default_sampling_params)
      .def("stats", &EngineHandle::stats)
      .def("info", &EngineHandle::info)
      .def_prop_ro("model_folder", &EngineHandle::model_folder);
}

}  // namespace
}  // namespace foretoken::python

NB_MODULE(_core, module) {
  namespace ftp = foretoken::python;
  // Threads that wait in the engine when the interpreter ends keep their references, rightly.
  nanobind::set_leak_warnings(false);
  module.doc() = "The C++ engine; private to the package.";
  module.attr("version") = foretoken::kVersion;
  ftp::bind_records(module);
  ftp::bind_inbox(module);
  ftp::bind_engine(module);
  ftp::bind_arguments(module);
  module.def(
      "init_logging", [](const std::string& level) { foretoken::init_logging(level.c_str()); },
      nanobind::arg("level"));
  module.def(
      "embedding_score",
      [](const std::vector<float>& a, const std::vector<float>& b) {
        return foretoken::embedding_score(a, b);
      },
      nanobind::arg("a"), nanobind::arg("b"), "The product of two embeddings of equal length.");
  module.def(
      "check_request",
      [](const std::string& fields) { ftp::raise_if_error(ftp::read_request(fields).status()); },
      nanobind::arg("fields"), "Raises ValueError where no model could run these fields.");
}
