# See tests/entries.cmake.
set(sanitizers asan)
# Random texts of the largest vocabularies: a family of each kind of tokenizer is left, and their other
# tests.
set(slow_asan "(PiecesOfRandomText|RandomTextSurvives).*/(llama3|qwen2|deepseek|gemma)$")
