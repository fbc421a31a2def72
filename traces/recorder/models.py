"""Models, tokenizers, prompts, and the text of each token."""

import json
from pathlib import Path

import huggingface_hub
import torch
import transformers

from .errors import RecordError, first_line


def quiet_libraries() -> None:
    """Errors and progress are ours to tell."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    huggingface_hub.utils.logging.set_verbosity_error()


def place_of(name: str, revision: str | None) -> tuple[str, dict[str, str]]:
    """Where a model lies (hub id, folder or GGUF file), as the library wants it said."""
    path = Path(name)
    if path.suffix != ".gguf":
        return name, {"revision": revision} if revision else {}
    if not path.is_file():
        raise RecordError(f"{name}: no such file")
    return str(path.parent), {"gguf_file": path.name}


def load_tokenizer(name: str, revision: str | None):
    """The tokenizer alone, which is small."""
    place, options = place_of(name, revision)
    try:
        return transformers.AutoTokenizer.from_pretrained(place, **options)
    except Exception as problem:  # the library and the files it reads may raise anything
        raise RecordError(f"the tokenizer of {name!r} cannot be loaded: {first_line(problem)}") from problem


def load_model(name: str, revision: str | None, arithmetic: torch.dtype, device: str):
    """The model, and the metadata that names it."""
    place, options = place_of(name, revision)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=arithmetic, attn_implementation="eager", **options
        ).to(device)
    except Exception as problem:
        raise RecordError(f"model {name!r} cannot be loaded: {first_line(problem)}") from problem
    named = {"model": Path(name).name if Path(name).exists() else name}
    commit = getattr(model.config, "_commit_hash", None)
    return model, named | ({"revision": commit} if commit else {})


def check_device(name: str) -> None:
    """Refuse a device that this torch does not have, before anything is loaded."""
    try:
        torch.ones(1, device=name)
    except Exception as problem:
        raise RecordError(f"--device {name}: {first_line(problem)}") from problem


# ------------------------------------------------------------------------------------------- prompts


def read_text(path: Path) -> str:
    """A UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise RecordError(f"{path}: {(problem.strerror or str(problem)).lower()}") from problem
    except UnicodeDecodeError as problem:
        raise RecordError(f"{path}: not UTF-8 at byte {problem.start}: save the file as UTF-8") from problem


def prompt_ids(tokenizer, path: Path, is_chat: bool, answer: bool, most: int | None) -> list[int]:
    """The token ids of a text or chat file, cut to `most`; a chat is made ready for an answer where one comes."""
    content = read_text(path)
    text = chat_text(path, content, tokenizer, answer) if is_chat else content
    ids = tokenizer(text, add_special_tokens=not is_chat)["input_ids"]
    if not ids:
        raise RecordError(f"{path}: no tokens to read")
    check_known(path, tokenizer, ids)
    return ids[:most]


def chat_text(path: Path, content: str, tokenizer, answer: bool) -> str:
    """A chat in the model's own template."""
    try:
        chat = json.loads(content)
    except json.JSONDecodeError as problem:
        raise RecordError(f"{path}:{problem.lineno}: not JSON: {problem.msg.lower()}") from problem
    messages = chat.get("messages") if isinstance(chat, dict) else chat
    fine = isinstance(messages, list) and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in messages)
    if not fine or not messages:
        raise RecordError(f'{path}: not a chat: needs a list such as [{{"role": "user", "content": "..."}}]')
    if not tokenizer.chat_template:
        raise RecordError("the model has no chat template: write the prompt out and give it with --text")
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=answer)
    except Exception as problem:  # a template is a program of the model's authors and may raise anything
        raise RecordError(f"{path}: the model's chat template refuses it: {first_line(problem)}") from problem


def check_known(path: Path, tokenizer, ids: list[int]) -> None:
    """Refuse a text that is mostly unknown to the tokenizer: the model would read something else."""
    unknown = sum(i == tokenizer.unk_token_id for i in ids)
    if 2 * unknown > len(ids):
        raise RecordError(
            f"{path}: {unknown} of {len(ids)} tokens are unknown to the tokenizer: is it the model's own?"
        )


def check_vocabulary(model, ids: list[int]) -> None:
    """Refuse token ids that the model has no embedding for."""
    rows = model.get_input_embeddings().weight.shape[0]
    if max(ids) >= rows:
        raise RecordError(f"token id {max(ids)}, but the model knows {rows} tokens: is the tokenizer the model's own?")


def bos_of(tokenizer, token_ids: list[int]) -> str:
    """Whether the sequence begins with the model's begin-of-sequence token."""
    return "added" if tokenizer.bos_token_id is not None and token_ids[0] == tokenizer.bos_token_id else "none"


def token_texts(tokenizer, token_ids: list[int]) -> list[str]:
    """What each token adds to the text; a character of several tokens comes with the last of them.

    A token is read behind those before it, since some tokenizers write a word's space only there.
    """

    def text(start: int, end: int) -> str:
        return tokenizer.decode(token_ids[start:end], skip_special_tokens=False, clean_up_tokenization_spaces=False)

    texts, start, told = [], 0, 0
    for i in range(len(token_ids)):
        before, with_this = text(start, told), text(start, i + 1)
        unfinished = with_this.endswith("\ufffd") and i + 1 < len(token_ids)
        texts.append("" if unfinished else with_this[len(before) :])
        if not unfinished:
            start, told = told, i + 1
    return texts


def generate(model, token_ids: list[int], count: int, seed: int | None) -> list[int]:
    """The prompt and what the model says next: the likeliest tokens, or a sample where there is a seed."""
    if seed is not None:
        torch.manual_seed(seed)
    prompt = torch.tensor([token_ids], device=model.device)
    with torch.no_grad():
        said = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=seed is not None
        )
    return said[0].tolist()
