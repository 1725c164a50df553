#include "model/layer/feed_forward/expert_faults.h"

#include <string_view>

#include "model/weights/weight_loader.h"

namespace foretoken {
namespace {

// A tensor of the experts of a layer; null: it has none.
const TensorView* experts_tensor(const Checkpoint& checkpoint, const std::string& layer) {
  const auto& tensors = checkpoint.tensors();
  for (auto at = tensors.lower_bound(layer); at != tensors.end(); ++at) {
    if (!at->first.starts_with(layer)) break;
    if (at->first.find(".experts.", layer.size() - 1) != std::string::npos) return at->second;
  }
  return nullptr;
}

Status correct(const Checkpoint& checkpoint, const std::string& what) {
  return checkpoint.with_own_fields(
      invalid_argument(what + "; correct " + checkpoint.config_name()));
}

std::string fields_of_layers(const ExpertFieldNames& names) {
  return names.count + (names.layers.empty() ? "" : ", " + names.layers);
}

}  // namespace

Status with_expert_fields(const PartLoader& loader, const std::string& layer,
                          const ExpertsSpec* wanted, const Status& loaded) {
  const Checkpoint* checkpoint = loader.weights().checkpoint();
  const ExpertFieldNames& names = loader.config().experts.names;
  const bool of_tensors =
      loaded.code() == StatusCode::kInvalidArgument || loaded.code() == StatusCode::kNotFound;
  if (checkpoint == nullptr || !of_tensors || names.count.empty()) return loaded;
  const TensorView* found = experts_tensor(*checkpoint, layer);
  if (wanted == nullptr) {
    if (found == nullptr) return loaded;
    return correct(*checkpoint, found->file + ": tensor '" + found->name +
                                    "' is of experts, which the layer does not have by " +
                                    fields_of_layers(names));
  }
  const auto router = checkpoint->tensors().find(layer + wanted->base + wanted->router + ".weight");
  if (router == checkpoint->tensors().end()) {
    if (found != nullptr || names.layers.empty()) return loaded;
    return correct(*checkpoint, loaded.message().substr(0, loaded.message().find(';')) +
                                    ", as the layer has no experts there, but by " +
                                    fields_of_layers(names));
  }
  const TensorView& view = *router->second;
  if (view.shape.empty() || view.shape[0] == wanted->choices()) return loaded;
  return correct(*checkpoint, view.file + ": tensor '" + view.name + "' has " +
                                  std::to_string(view.shape[0]) +
                                  " rows, one for each expert, but " + names.count + " is " +
                                  std::to_string(wanted->count));
}

}  // namespace foretoken
