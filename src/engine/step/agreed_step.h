#pragma once
#include "engine/step/shape/step_shape.h"
#include "group/shape_agreement.h"

namespace foretoken {

// The steps of engines that share layers (group/shape_agreement.h).

// What a step of that shape wants of the others.
group::StepShapeWish wish_of(const StepShape& shape);

// The shape with the rows and passes that all agreed on; its own steps fill a part of them.
StepShape with_passes_of(StepShape shape, const group::StepShapeWish& agreed);

}  // namespace foretoken
