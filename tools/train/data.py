"""Reads the arrays of prepare.py and draws training rows from them."""

import json
import queue
import threading

import numpy as np
import torch

END_OF_TEXT, USER, ASSISTANT, END_OF_TURN = range(4)
OWN_MARKS = {"end_of_text": END_OF_TEXT, "assistant": [ASSISTANT]}


class Corpus:
    """Rows are made of whole documents; each starts at a document's first token.

    Sources are drawn so that their shares of tokens follow the weights in summary.json. A document longer than a row
    gives a window of it. Not for use by several threads at once.
    """

    def __init__(self, folder, seed):
        self.summary = json.loads((folder / "summary.json").read_text())
        self.generator = np.random.default_rng(seed)
        self.marks = self.summary.get("marks", OWN_MARKS)
        arrays = np.load(folder / "tokens.npz")
        self.names = list(self.summary["train"])
        self.sources = [(arrays[f"train/{name}/tokens"], arrays[f"train/{name}/offsets"]) for name in self.names]
        self.weights = [self.summary["train"][name]["weight"] for name in self.names]
        self.evaluation = {name: arrays[f"evaluate/{name}/tokens"] for name in self.summary["evaluate"]}
        self.prepare_draws()

    def prepare_draws(self):
        lengths = np.array([len(tokens) / (len(offsets) - 1) for tokens, offsets in self.sources])
        chances = np.array(self.weights) / lengths
        self.chances = chances / chances.sum()
        self.queues = [[] for _ in self.sources]
        self.drawn = []

    def add_source(self, name, documents, share):
        """Adds documents (lists of ids) that take `share` of the tokens from now on."""
        offsets = np.cumsum([0] + [len(document) for document in documents])
        self.sources.append((np.concatenate([np.asarray(row, self.sources[0][0].dtype) for row in documents]), offsets))
        self.names.append(name)
        total = sum(self.weights)
        self.weights = [weight / total * (1 - share) for weight in self.weights] + [share]
        self.prepare_draws()

    def keep(self, names):
        """Draws from these sources only from now on; their shares keep their proportions."""
        kept = [index for index, name in enumerate(self.names) if name in names]
        self.names, self.sources, self.weights = ([part[index] for index in kept]
                                                  for part in (self.names, self.sources, self.weights))
        self.evaluation = {name: tokens for name, tokens in self.evaluation.items() if name in names}
        self.prepare_draws()

    def next_source(self):
        if not self.drawn:
            self.drawn = self.generator.choice(len(self.sources), size=4096, p=self.chances).tolist()
        return self.drawn.pop()

    def next_document(self, source):
        """Each source runs through all its documents in a fresh order before one comes again."""
        tokens, offsets = self.sources[source]
        if not self.queues[source]:
            self.queues[source] = self.generator.permutation(len(offsets) - 1).tolist()
        index = self.queues[source].pop()
        return tokens[offsets[index]:offsets[index + 1]]

    def batch(self, rows, length):
        """Ids [rows, length + 1]: inputs and, shifted by one, targets."""
        result = np.empty((rows, length + 1), dtype=self.sources[0][0].dtype)
        for row in result:
            filled = 0
            while filled <= length:
                document = self.next_document(self.next_source())
                if len(document) > length and self.generator.random() < 0.7:
                    document = document[self.generator.integers(len(document) - length):]
                piece = document[:length + 1 - filled]
                row[filled:filled + len(piece)] = piece
                filled += len(piece)
        return result

    def windows(self, name, length):
        """int64 inputs and targets [n, length] over a held-out text; -100 marks padding."""
        return windows(self.evaluation[name], length)


def windows(tokens, length):
    tokens = np.asarray(tokens).astype(np.int64)
    count = -(-(len(tokens) - 1) // length)
    inputs = np.zeros(count * length, np.int64)
    targets = np.full(count * length, -100, np.int64)
    inputs[:len(tokens) - 1], targets[:len(tokens) - 1] = tokens[:-1], tokens[1:]
    return inputs.reshape(count, length), targets.reshape(count, length)


def split_documents(tokens, end_of_text=END_OF_TEXT):
    """Documents of a held-out array, without their end marks."""
    ends = np.flatnonzero(tokens == end_of_text)
    starts = np.concatenate(([0], ends[:-1] + 1))
    return [tokens[start:end].tolist() for start, end in zip(starts, ends)]


def first_question(document):
    """A chat up to where its first answer begins, and that answer."""
    start = document.index(ASSISTANT) + 1
    return document[:start], document[start:document.index(END_OF_TURN, start)]


class Batches:
    """Draws int64 rows [rows, length + 1] in a background thread; `length` may change any time, the token count stays."""

    def __init__(self, corpus, tokens, length, pin):
        self.corpus, self.tokens, self.length, self.pin = corpus, tokens, length, pin
        self.ready, self.stopped = queue.Queue(maxsize=8), False
        threading.Thread(target=self.produce, daemon=True).start()

    def produce(self):
        while not self.stopped:
            length = self.length
            rows = torch.from_numpy(self.corpus.batch(max(1, self.tokens // length), length).astype(np.int64))
            self.ready.put(rows.pin_memory() if self.pin else rows)

    def next(self):
        return self.ready.get()

    def stop(self):
        self.stopped = True
        while not self.ready.empty():
            self.ready.get()


class Vocabulary:
    """Turns ids back into text, reading a byte-level tokenizer.json; needs no library."""

    def __init__(self, path):
        model = json.loads(path.read_text())["model"]
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        symbols = dict(zip(map(chr, plain), plain))
        rest = (byte for byte in range(256) if byte not in plain)
        symbols.update((chr(256 + i), byte) for i, byte in enumerate(rest))
        self.bytes = {}
        for token, index in model["vocab"].items():
            known = all(symbol in symbols for symbol in token)
            self.bytes[index] = bytes(symbols[symbol] for symbol in token) if known and index > 3 else token.encode()

    def text(self, ids):
        return b"".join(self.bytes[int(index)] for index in ids).decode(errors="replace")
