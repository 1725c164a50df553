#pragma once
#include <string>

namespace foretoken {

// The drafter that a model is made for.
struct MethodGuess {
  std::string method;    // a name of draft/registry.cpp; empty: nothing tells
  bool certain = false;  // the files leave no other choice
};

// What the files of a folder say: tensors where they can be read, and config.json where these do
// not tell. Never fails: what cannot be read says nothing.
MethodGuess method_of_files(const std::string& folder);

// What the name of a model says, by vLLM's rules: a last path component with "eagle3", "eagle",
// "mtp", "medusa" or another method of heads in it; draft_model otherwise.
MethodGuess method_of_name(const std::string& model);

}  // namespace foretoken
