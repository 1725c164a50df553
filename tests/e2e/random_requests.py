"""Requests of every API that makes text, with sampling fields beside one another at random.

A request is (path, body). Bodies have a seed, so that the same one has the same answer whatever runs beside it.
"""

import random

PROMPTS = ["Once upon a time there was a cat", "The little dog ran to the park and the little dog ran to", "3 + 4 =",
           "a a a a a a a a a a a a", "She said: \"Hello\"\n\nHe said: \"Hello\"\n\nShe said:",
           "\u00e9t\u00e9 \U0001f600 \u65e5\u672c\u8a9e Once", "Lily likes to play with her red ball. " * 3]
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
     "required": ["name", "age"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 1, "maxItems": 4},
    {"type": "object", "properties": {"a": {"enum": ["cat", "dog"]}, "b": {"type": "boolean"},
                                      "c": {"type": "number"}}, "required": ["a"], "additionalProperties": False},
]
FORMS = [{"choice": ["a cat", "a dog", "the cat and the dog", "one"]}, {"regex": "[a-z ]{3,20}\\."},
         {"regex": "(the|a) (cat|dog)( and)?"}, {"grammar": "root ::= \"yes\" | \"no\" (\" \" root)?"},
         *({"json": schema} for schema in SCHEMAS)]
# How often a field is there, and what it may be.
FIELDS = {
    "top_p": (0.3, [0.1, 0.5, 0.9, 1]), "top_k": (0.3, [1, 2, 50, -1, 0]), "min_p": (0.2, [0, 0.05, 0.3]),
    "presence_penalty": (0.2, [-2, 0.5, 2]), "frequency_penalty": (0.2, [-2, -0.5, 2]),
    "repetition_penalty": (0.2, [0.8, 1.1, 2, 1e-6, 1e6]),
    "stop": (0.25, [["."], ["the"], ["\n", " a"], "e", "Zzz", ["ing ", "and the little"]]),
    "ignore_eos": (0.15, [True]), "include_stop_str_in_output": (0.1, [True]), "skip_special_tokens": (0.1, [False]),
    "spaces_between_special_tokens": (0.1, [False]),
    "bad_words": (0.15, [["the"], ["cat", "Lily"], ["and the", "little", "He said"]]),
}
LOGPROBS = [0, 1, 5, 20]


class Requests:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, seed, vocab_size):
        self.random = random.Random(seed)
        self.vocab_size = vocab_size

    def ids(self, most):
        return [self.random.randrange(self.vocab_size) for _ in range(self.random.randint(1, most))]

    def chance(self, share):
        return self.random.random() < share

    def sampling(self):
        """The fields of a body of /v1/completions, without a prompt."""
        pick = self.random.choice
        body = {"seed": self.random.randrange(1000), "max_tokens": pick([1, 2, 5, 12, 24, 40]),
                "temperature": pick([0, 0, 0.3, 0.8, 1, 5])}
        body.update({name: pick(values) for name, (share, values) in FIELDS.items() if self.chance(share)})
        if self.chance(0.15):
            body["stop_token_ids"] = self.ids(20)
        if self.chance(0.15):
            body["logit_bias"] = {str(token): pick([-100, -3, 2, 8, 100]) for token in self.ids(20)}
        if self.chance(0.15):
            body["min_tokens"] = self.random.randint(0, body["max_tokens"])
        if body["temperature"] > 0 and self.chance(0.25):
            body["n"] = pick([2, 3, 5])
        if self.chance(0.08):
            body["allowed_token_ids"] = self.ids(200)
        elif self.chance(0.25):
            body["structured_outputs"] = pick(FORMS)
            body["max_tokens"] = max(body["max_tokens"], pick([5, 40, 80]))
        return body

    def completion(self):
        body = self.sampling()
        body["prompt"] = self.ids(20) if self.chance(0.15) else self.random.choice(PROMPTS)
        if self.chance(0.1):
            body["prompt"] = self.random.sample(PROMPTS, 2)
        body.update({name: self.random.choice(values) for name, share, values in (
            ("logprobs", 0.4, LOGPROBS), ("echo", 0.2, [True]), ("prompt_logprobs", 0.15, [0, 1, 3]),
            ("return_token_ids", 0.1, [True])) if self.chance(share)})
        return "/v1/completions", body

    def chat(self):
        body = self.sampling()
        body["messages"] = [{"role": "user", "content": self.random.choice(PROMPTS)}]
        if self.chance(0.3):
            body["messages"] += [{"role": "assistant", "content": "Once there"}]
            body.update(continue_final_message=True, add_generation_prompt=False)
        if self.chance(0.4):
            body.update(logprobs=True, top_logprobs=self.random.choice(LOGPROBS))
        if self.chance(0.15) and "structured_outputs" not in body:
            body["tools"] = [{"type": "function", "function": {"name": "f", "parameters": SCHEMAS[2]}}]
            body.update(tool_choice=self.random.choice(["auto", "required", "none"]), max_tokens=60)
        return "/v1/chat/completions", body

    def llama(self):
        body = self.sampling()
        for name in ("structured_outputs", "max_tokens", "min_tokens"):
            body.pop(name, None)
        body.update(prompt=self.random.choice(PROMPTS), n_predict=self.random.choice([1, 5, 30]), return_tokens=True)
        if self.chance(0.4):
            body.update(n_probs=self.random.choice([1, 5]), post_sampling_probs=self.chance(0.3))
        return "/completion", body

    def response(self):
        body = self.sampling()
        for name in ("n", "structured_outputs", "min_tokens"):
            body.pop(name, None)
        body.update(input=self.random.choice(PROMPTS), max_output_tokens=body.pop("max_tokens"))
        if self.chance(0.3):
            body.update(top_logprobs=3, include=["message.output_text.logprobs"])
        if self.chance(0.2) and "allowed_token_ids" not in body:
            body["text"] = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMAS[0]}}
            body["max_output_tokens"] = 80
        return "/v1/responses", body

    def message(self):
        body = self.sampling()
        for name in ("n", "structured_outputs"):
            body.pop(name, None)
        body["messages"] = [{"role": "user", "content": self.random.choice(PROMPTS)}]
        stop = body.pop("stop", [])
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        return "/v1/messages", body

    def tgi(self):
        drawn = self.sampling()
        names = ("seed", "temperature", "top_p", "top_k", "frequency_penalty", "repetition_penalty", "stop")
        parameters = {name: drawn[name] for name in names if name in drawn}
        parameters.update(max_new_tokens=drawn["max_tokens"], details=True, top_n_tokens=self.random.choice([0, 2]))
        form = drawn.get("structured_outputs", {})
        for kind in ("json", "regex"):
            if kind in form:
                parameters["grammar"] = {"type": kind, "value": form[kind]}
        return "/generate", {"inputs": self.random.choice(PROMPTS), "parameters": parameters}

    def draw(self):
        kinds = [self.completion, self.completion, self.chat, self.chat, self.llama, self.response, self.message,
                 self.tgi]
        return self.random.choice(kinds)()
