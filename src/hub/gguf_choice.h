#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The GGUF files of one model among the names of a repository or folder: the one of `type`
// ("Q4_K_M", in any case), in all its parts, the first one first. Without a type Q4_K_M, or else
// the first by name, as llama.cpp does. NotFound lists the types that there are; `where` begins its
// message. Files of image projectors and importance matrices are no models.
Result<std::vector<std::string>> choose_gguf(const std::vector<std::string>& names,
                                             const std::string& type, const std::string& where);

// Whether a repository's or folder's model is a GGUF file: it has some, and no other weights. A
// config.json beside them says nothing that the file does not.
bool holds_gguf_alone(const std::vector<std::string>& names);

// The folder itself, or the path of the one GGUF file in it, in all its parts, where it holds no
// other weights; or in one of its folders, where it holds none and no config.json. InvalidArgument
// lists the files where there are several models.
Result<std::string> gguf_in_folder(const std::string& folder);

}  // namespace foretoken
