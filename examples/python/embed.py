"""Embeddings, and how alike two texts are."""

from foretoken import LLM

llm = LLM(runner="pooling", pooler_config={"pooling_type": "MEAN"})
for output in llm.embed(["A cat sat on a mat.", "12 + 7 = 19"]):
    vector = output.outputs.embedding
    print(len(vector), [round(x, 3) for x in vector[:4]])
for pair in llm.score("A cat sat.", ["The dog sat.", "def add(a, b): return a + b"]):
    print(round(pair.outputs.score, 3))
