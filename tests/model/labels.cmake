# See tests/entries.cmake.
set(sanitizers asan)
# Families of architectures in every form of weights, forms of weights in every type, and heads with their rates.
set(in_turns "Golden.*/" "DecoderWeightsOf\\." "QuantizedModel\\." "GgufFamilies\\." "DialledPromptRate\\.")
