#pragma once
#include <string>

namespace foretoken {

// By which the modules of a model and those of its adapters find each other, which may have been
// trained with more around the decoder: the name from "layers." (or what stands for that) on, or
// the last part of one beside the layers, as "lm_head" and "embed_tokens"; empty for a module of
// something else.
std::string module_key(const std::string& module);

// That of a layer's module behind the layer's number: "self_attn.q_proj".
std::string behind_number(const std::string& key);

}  // namespace foretoken
