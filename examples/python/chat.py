"""Conversations through the model's chat template."""

from foretoken import LLM, SamplingParams

llm = LLM()
questions = ["What is 3 + 4?", "Tell me a short story about a cat."]
conversations = [[{"role": "user", "content": question}] for question in questions]
for answer in llm.chat(conversations, SamplingParams(temperature=0, max_tokens=60)):
    print(answer.outputs[0].text)
