#include "model/config/architecture.h"

namespace foretoken {
namespace {

constexpr const char* kLlavaVision[] = {"vision_tower.", "multi_modal_projector.",
                                        "model.vision_tower.", "model.multi_modal_projector."};

}  // namespace

// Liu et al. 2023: a Llama that reads images, of which only the text part is read. Its files leave
// out what Llama 7B has.
constinit const Architecture kLlavaArchitecture = {
    .name = "LlavaForConditionalGeneration",
    .description = "LLaVA 1.5; its text part",
    .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048})",
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kLlavaVision},
    .text_config = true,
};

}  // namespace foretoken
