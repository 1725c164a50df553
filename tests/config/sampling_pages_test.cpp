// What is made from the table of sampling fields and checked in: the base of Python's
// SamplingParams, the table of docs/serving.md, and names of the fuzzer's dictionary.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/generated_part.h"
#include "config/sampling_fields.h"

namespace foretoken {
namespace {

std::string python_of(bool) { return "bool"; }
std::string python_of(int) { return "int"; }
std::string python_of(float) { return "float"; }
std::string python_of(const std::vector<std::string>&) { return "list[str] | None"; }
std::string python_of(const std::vector<int32_t>&) { return "list[int] | None"; }
std::string python_of(const std::vector<std::pair<int32_t, float>>&) {
  return "dict[int, float] | None";
}
template <class T>
std::string python_of(const std::optional<T>&) {
  const std::string inner = python_of(T());
  return inner.ends_with("None") ? inner : inner + " | None";
}
std::string python_of(const std::optional<uint64_t>&) { return "int | None"; }

std::string python_type(const SamplingField& field) {
  std::string type;
  visit_sampling_member(field, SamplingParams(), [&](const auto& is) { type = python_of(is); });
  return field.python_type != nullptr ? field.python_type : type;
}

std::string default_text(const SamplingField& field, const char* none) {
  const auto value = sampling_value(field, SamplingParams());
  return value.is_null() || value.is_array() ? none : value.dump();
}

std::string python_default(const SamplingField& field) {
  const std::string text = default_text(field, "None");
  return text == "true" ? "True" : text == "false" ? "False" : text;
}

std::string python_module() {
  std::string text =
      "\"\"\"The fields of sampling that the engine has: made from "
      "src/config/sampling_fields.cpp.\n\n"
      "CONTRIBUTING.md says how; do not edit.\n\"\"\"\n\n"
      "from __future__ import annotations\n\nfrom dataclasses import dataclass\n\n\n"
      "@dataclass\nclass SamplingFields:\n"
      "    \"\"\"Names and defaults, in vLLM's order.\"\"\"\n\n";
  for (const SamplingField& field : sampling_fields()) {
    text += "    # " + std::string(field.help) + ".\n    " + field.name + ": " +
            python_type(field) + " = " + python_default(field) + "\n";
  }
  return text;
}

// By groups, as the flags are.
std::string serving_table() {
  std::vector<SamplingField> rows(sampling_fields().begin(), sampling_fields().end());
  std::ranges::stable_sort(rows, {}, &SamplingField::group);
  std::string text = "\n| field | range | default | flag | meaning |\n|---|---|---|---|---|\n";
  for (const SamplingField& field : rows) {
    const std::string model = field.model_name != nullptr ? "the model's, else " : "";
    const std::string other =
        field.llama_name != nullptr ? " (llama.cpp: `" + std::string(field.llama_name) + "`)" : "";
    text += "| `" + std::string(field.name) + "` | " + range_text(field.range) + " | " + model +
            default_text(field, "none") + " | `" + sampling_flag(field) + "` | " + field.help +
            other + " |\n";
  }
  return text + "\n";
}

std::string dictionary() {
  std::set<std::string> names;
  for (const SamplingField& field : sampling_fields()) {
    names.insert(field.name);
    if (field.llama_name != nullptr) names.insert(field.llama_name);
  }
  std::string text;
  for (const std::string& name : names) text += "\"\\\"" + name + "\\\"\"\n";
  return text;
}

TEST(SamplingPages, PythonHasTheFields) {
  test::expect_generated({"python/foretoken/_sampling_fields.py", "", ""}, python_module());
}

TEST(SamplingPages, TheServersPageHasTheFields) {
  test::expect_generated({"docs/serving.md", "<!-- sampling fields, made from src/config -->",
                          "<!-- end of the sampling fields -->"},
                         serving_table());
}

TEST(SamplingPages, TheFuzzersDictionaryHasTheFields) {
  test::expect_generated({"tests/fuzz/json_request.dict", "# Fields of sampling.", "# Others."},
                         dictionary());
}

}  // namespace
}  // namespace foretoken
