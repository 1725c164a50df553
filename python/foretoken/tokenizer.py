"""The engine's tokenizer, with the usual methods of Hugging Face's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretoken import _core
from foretoken._values import listed, to_json, whole_text


# Arguments of Hugging Face's apply_chat_template that are no variables of the template.
_OF_TENSORS = ("return_tensors", "return_dict", "padding", "truncation", "max_length")


class Tokenizer:
    """What LLM.get_tokenizer() returns. Thread-safe; works until the engine is shut down."""

    def __init__(self, engine: _core.Engine) -> None:
        self._engine = engine
        engine.encode("", False)  # says so where the engine has no tokenizer
        self._special = engine.special_tokens()

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._engine.encode(whole_text(text), add_special_tokens)

    def decode(self, token_ids: Any, skip_special_tokens: bool = False) -> str:
        """`token_ids`: an id, or a sequence or an array of them."""
        token_ids = listed(token_ids)
        ids = list(token_ids) if isinstance(token_ids, Sequence) else [int(token_ids)]
        return self._engine.decode([int(token) for token in ids], skip_special_tokens)

    def batch_decode(self, sequences: Any, skip_special_tokens: bool = False) -> list[str]:
        return [self.decode(ids, skip_special_tokens) for ids in listed(sequences)]

    def __call__(
        self, text: str | Sequence[str], add_special_tokens: bool = True
    ) -> dict[str, Any]:
        """Lists under input_ids and attention_mask; nested where `text` is a list."""
        if isinstance(text, str):
            ids = self.encode(text, add_special_tokens)
            return {"input_ids": ids, "attention_mask": [1] * len(ids)}
        rows = [self.encode(part, add_special_tokens) for part in text]
        return {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> str | list[int]:
        """The prompt of a conversation: ids, or text with `tokenize=False`."""
        for name in _OF_TENSORS:
            if kwargs.pop(name, None):
                raise NotImplementedError(f"{name} is not built; prompts are text or lists of ids")
        arguments: dict[str, Any] = {
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
            "chat_template_kwargs": kwargs,
        }
        if tools is not None:
            arguments["tools"] = list(tools)
        if documents is not None:
            arguments["documents"] = list(documents)
        text = self._engine.render_chat(
            to_json(list(conversation)), to_json(arguments), whole_text(chat_template or "")
        )
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def _token(self, role: str) -> str | None:
        return self._special.get(role)

    def _token_id(self, role: str) -> int | None:
        token = self._token(role)
        if token is None:
            return None
        ids = self.encode(token, add_special_tokens=False)
        return ids[0] if len(ids) == 1 else None

    @property
    def bos_token(self) -> str | None:
        return self._token("bos_token")

    @property
    def eos_token(self) -> str | None:
        return self._token("eos_token")

    @property
    def pad_token(self) -> str | None:
        return self._token("pad_token")

    @property
    def bos_token_id(self) -> int | None:
        return self._token_id("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        return self._token_id("eos_token")

    @property
    def pad_token_id(self) -> int | None:
        return self._token_id("pad_token")

    @property
    def vocab_size(self) -> int:
        return self._engine.info().vocab_size

    def __len__(self) -> int:
        return self.vocab_size
