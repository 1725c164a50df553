#pragma once
#include <string>
#include <vector>

#include "gguf/model_files.h"

namespace foretoken {

// What the numbers of a model that judges texts mean.
struct JudgeLabels {
  std::vector<std::string> names;  // as many as there are numbers
  // config.json's problem_type: "regression", "single_label_classification",
  // "multi_label_classification", or empty.
  std::string problem_type;
  // How a pair is one text, with "{query}" and "{document}" in it: what GGUF files call the chat
  // template "rerank" (Qwen 3). Empty: there is none.
  std::string pair_template;
};

// As id2label and problem_type of config.json say; transformers' LABEL_n where it names none. Any
// thread.
JudgeLabels judge_labels(const ModelFiles& model, int num_labels);

}  // namespace foretoken
