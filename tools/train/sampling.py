"""Text of a target's own writing: prompts from documents, and what the target answers to them."""

import math
import time

from data import OWN_MARKS, split_documents


def add_sampling_arguments(parser, share):
    """What sample_texts and training_prompts read; `share`: the usual one of the training tokens."""
    parser.add_argument("--samples", type=int, default=32768, help="texts to sample from the target")
    parser.add_argument("--sample-rows", type=int, default=4096, help="texts sampled at once")
    parser.add_argument("--sample-tokens", type=int, default=384, help="tokens of prompt and output together")
    parser.add_argument("--sample-seconds", type=float, default=math.inf)
    parser.add_argument("--sample-share", type=float, default=share, help="of the training tokens")


def answers_begin(document, mark):
    """Indices after each occurrence of the assistant's mark (a list of ids)."""
    return [index + len(mark) for index in range(len(document) - len(mark) + 1)
            if mark and document[index:index + len(mark)] == mark]


def opening(document, generator, marks=OWN_MARKS):
    """A prompt: a chat up to one of its answers, or the first words of a text."""
    answers = answers_begin(document, marks["assistant"])
    return document[:generator.choice(answers) if answers else generator.randint(1, 24)]


def usual_end(prompt, output, marks=OWN_MARKS):
    """The sampled text as a training document: chats and texts end with the end-of-text mark."""
    return prompt + output + ([] if output and output[-1] == marks["end_of_text"] else [marks["end_of_text"]])


def sample_texts(write, prompts, args, seconds=math.inf, marks=OWN_MARKS):
    """Documents of the target's own writing; a third greedy, the others at 0.5 to 1.

    write(prompts, length, device, temperatures, seed) returns what follows each prompt.
    """
    documents, start = [], time.monotonic()
    for first in range(0, len(prompts), args.sample_rows):
        part = prompts[first:first + args.sample_rows]
        heat = [(0.0, 0.5 + 0.5 * (row % 7) / 6, 1.0)[row % 3] for row in range(len(part))]
        outputs = write(part, args.sample_tokens, args.device, heat, args.seed + first)
        documents += [usual_end(prompt, output, marks) for prompt, output in zip(part, outputs)]
        spent = time.monotonic() - start
        print(f"{len(documents)} texts sampled in {spent:.1f} s", flush=True)
        if spent * (1 + len(part) / len(documents)) > seconds:
            break
    return documents


def training_prompts(corpus, args, generator):
    """Prompts of at most half of the sampled length, by the sources' shares."""
    prompts = []
    while len(prompts) < args.samples:
        prompt = opening(corpus.next_document(corpus.next_source()).tolist(), generator, corpus.marks)
        if len(prompt) <= args.sample_tokens // 2:
            prompts.append(prompt)
    return prompts


def held_out_prompts(corpus, args, generator, each=40):
    """{source: prompts} of documents that no training saw."""
    result = {}
    for name, tokens in corpus.evaluation.items():
        documents = [row for row in split_documents(tokens, corpus.marks["end_of_text"]) if len(row) > 8]
        prompts = [opening(row, generator, corpus.marks) for row in generator.sample(documents, min(each, len(documents)))]
        result[name] = [prompt for prompt in prompts if len(prompt) <= args.sample_tokens // 2]
    return {name: prompts for name, prompts in result.items() if prompts}
