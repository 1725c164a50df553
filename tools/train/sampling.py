"""Text of a target's own writing: prompts from documents, and what the target answers to them."""

import math
import time

from data import ASSISTANT, END_OF_TEXT, END_OF_TURN, split_documents
from generate import generate


def opening(document, generator):
    """A prompt: a chat up to one of its answers, or the first words of a text."""
    answers = [index for index, token in enumerate(document) if token == ASSISTANT]
    if answers:
        return document[:generator.choice(answers) + 1]
    return document[:generator.randint(1, 24)]


def usual_end(prompt, output):
    """The sampled text as a training document: chats and texts end with the end-of-text mark."""
    finished = output and output[-1] in (END_OF_TEXT, END_OF_TURN)
    return prompt + output + ([END_OF_TEXT] if not finished or output[-1] == END_OF_TURN else [])


def sample_texts(target, prompts, args, seconds=math.inf):
    """Documents of the target's own writing; a third greedy, the others at 0.5 to 1."""
    documents, start = [], time.monotonic()
    for first in range(0, len(prompts), args.sample_rows):
        part = prompts[first:first + args.sample_rows]
        heat = [(0.0, 0.5 + 0.5 * (row % 7) / 6, 1.0)[row % 3] for row in range(len(part))]
        outputs = generate(target, part, args.sample_tokens, args.device, heat, args.seed + first, args.sample_tokens)
        documents += [usual_end(prompt, output) for prompt, output in zip(part, outputs)]
        spent = time.monotonic() - start
        print(f"{len(documents)} texts sampled in {spent:.1f} s", flush=True)
        if spent * (1 + len(part) / len(documents)) > seconds:
            break
    return documents


def training_prompts(corpus, args, generator):
    """Prompts of at most half of the sampled length, by the sources' shares; short ones lie together, for speed."""
    prompts = []
    while len(prompts) < args.samples:
        prompt = opening(corpus.next_document(corpus.next_source()).tolist(), generator)
        if len(prompt) <= args.sample_tokens // 2:
            prompts.append(prompt)
    return prompts


def held_out_prompts(corpus, args, generator, each=40):
    """{source: prompts} of documents that no training saw."""
    result = {}
    for name, tokens in corpus.evaluation.items():
        documents = [row for row in split_documents(tokens) if len(row) > 8]
        prompts = [opening(row, generator) for row in generator.sample(documents, min(each, len(documents)))]
        result[name] = [prompt for prompt in prompts if len(prompt) <= args.sample_tokens // 2]
    return {name: prompts for name, prompts in result.items() if prompts}
