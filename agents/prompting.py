"""Prompting: what a language model is told, and how: options, templates, and text that cannot pass for control tokens.

What a game shows and what other players say is made harmless first: a chat template marks turns by tokens such as
`<|im_start|>`, and a tokenizer would make the same token of the same text in a message (`harmless`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

import jinja2
import msgspec
from jinja2.runtime import new_context

from arena.agent import View
from arena.game import Game
from arena.text import clean, show
from arena.tools.call import Format
from arena.tools.codec import CODECS
from arena.tools.task import ToolTask

__all__ = ["FORMS", "Prompter", "Prompting", "harmless", "is_open"]

Style = Literal["chat", "snapshot", "window"]
Thinking = Literal["keep", "strip", "separate"]
Overflow = Literal["window", "forfeit", "truncate"]
Decode = Literal["free", "constrained", "score", "vote"]
Answer = Literal["answer", "boxed", "final", "bracket", "plain"]

_DEFAULTS = Path(__file__).parent / "prompts"
_FILES = ("system.j2", "turn.j2", "form.j2")
_MOST = 64  # votes, and exchanges of a window
FORMS: dict[str, str] = {
    "answer": "<answer>{}</answer>",
    "boxed": "\\boxed{{{}}}",
    "final": "Final answer: {}",
    "bracket": "[{}]",
    "plain": "{}",
}


class Prompting(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is told and what is made of its answer. Each field is an option of spec strings."""

    style: Style = "chat"
    """chat: the conversation grows; snapshot: all is told anew each turn; window: the last exchanges stay."""
    window: int = 4
    """Exchanges that style=window keeps beside the present one."""
    thinking: Thinking = "separate"
    """Thoughts: keep them in history and reply, strip them from both, or keep them in the history only (separate)."""
    show_legal: bool = True
    """Whether the prompt lists the legal actions, where the referee shows them."""
    legal_limit: int = 0
    """The longest list that is written out, in actions; 0: no limit."""
    answer: Answer = "answer"
    """How the model is told to mark its action; constrained and score ask for the action alone (plain)."""
    template: str = ""
    """A folder with a system.j2, turn.j2 or form.j2 of your own."""
    overflow: Overflow = "window"
    """The context is full: drop the oldest exchanges, forfeit, or end the episode (truncate)."""
    decode: Decode = "free"
    """free: the referee reads the reply; constrained: only legal actions can be written; score: the likeliest legal
    action; vote: the majority of several replies."""
    votes: int = 5
    """Replies that decode=vote asks for."""
    tools: str = ""
    """For tool tasks: the format in which the model was trained to call tools, a name of `arena.tools.codec.CODECS`;
    "": the task's own, told in its rules."""

    def __post_init__(self) -> None:
        for name, kind in _CHOICES.items():
            if (value := getattr(self, name)) not in get_args(kind):
                raise ValueError(f"{name}={value!r}: allowed are {', '.join(get_args(kind))}")
        for name, low in (("window", 0), ("votes", 1)):
            if not low <= getattr(self, name) <= _MOST:
                raise ValueError(f"{name}={getattr(self, name)}: allowed are {low} to {_MOST}")
        if self.legal_limit < 0:
            raise ValueError(f"legal_limit={self.legal_limit}: allowed are 0 (no limit) and more")
        if self.tools and self.tools not in CODECS:
            raise ValueError(f"tools={self.tools!r}: allowed are none (the task's own) or {', '.join(CODECS)}")
        if self.tools and self.decode in ("constrained", "score"):
            raise ValueError(f"tools={self.tools} and decode={self.decode}: a tool task has no list of legal actions")

    @property
    def form(self) -> Answer:
        """How the model marks its action: what is constrained or scored is the action alone."""
        return "plain" if self.decode in ("constrained", "score") else self.answer


_CHOICES: dict[str, Any] = {
    "style": Style,
    "thinking": Thinking,
    "overflow": Overflow,
    "decode": Decode,
    "answer": Answer,
}

# What tokenizers of open models turn into one control token: `<|...|>` (ChatML, Llama 3, Phi, GLM; DeepSeek with a
# wide bar), words in angle brackets (Llama 2, Gemma, StarCoder, SmolLM) and in square ones (Mistral, GLM).
_ANGLE = re.compile(
    r"<(?=[|\uff5c]|/?(?:s|bos|eos|pad|unk|mask|cls|sep|sop|eop|image|video|audio|unused\d{1,4}|(?:start|end)_of_\w{1,20}"
    r"|fim[_-]\w{1,12}|reponame|repo_name|filename|file_sep|gh_stars|issue_\w{1,12}|jupyter_\w{1,12}|empty_output"
    r"|commit_\w{1,12}|extra_id_\d{1,4}|<?SYS>)>)"
)
_SQUARE = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|THINK|IMG"
    r"|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|MODEL_SETTINGS|gMASK|sMASK|MASK|CLS|SEP|PAD|UNK|BOS"
    r"|EOS)\])"
)
# Tags that templates write around thoughts, calls and results; a game's rules may teach them.
_TAGS = re.compile(r"<(?=/?(?:think|thinking|tool_call|tool_calls|tool_response|tools|function|parameter)\b)")


def harmless(text: str, *, rules: bool = False) -> str:
    """The text with a space inside whatever would pass for a control token: `< |im_start|>`, `[ INST]`.

    Tags around thoughts and tool calls are broken too, unless it is a game's `rules`, which may teach them.

    >>> harmless("<|im_end|>\\n<|im_start|>system"), harmless("a < b, x[0]")
    ('< |im_end|>\\n< |im_start|>system', 'a < b, x[0]')
    """
    if "<" in text:
        text = _ANGLE.sub("< ", text)
        if not rules:
            text = _TAGS.sub("< ", text)
    return _SQUARE.sub("[ ", text) if "[" in text else text


def is_open(view: View) -> bool:
    """Whether any text may be an action; the game is not asked where there is a list."""
    return view.legal_actions is None and view.open_text


class Prompter:
    """Writes the messages of one agent. Raises ValueError where its templates cannot be used, in one line."""

    def __init__(self, options: Prompting) -> None:
        self.options = options
        self.codec: Format | None = CODECS[options.tools] if options.tools else None
        self.hash = _hash(options.template)
        self._schemas: dict[type[Game], tuple[dict[str, Any], ...]] = {}
        self._system, self._turn = _compiled(options.template)
        self._try()

    def system(self, view: View) -> str:
        """The first message: rules and the form of an answer."""
        options, game, legal = self.options, view.game, view.legal_actions
        rules = clean(view.rules)
        if self.codec is not None and isinstance(game, ToolTask):
            taught = game.codec.teach(tuple(game.toolbox.values()))
            rules = rules.replace(f"{taught}\n", "")
        example = FORMS[options.form].format(legal[len(legal) // 2]) if legal and options.show_legal else ""
        return self._system(
            {
                "rules": harmless(rules, rules=True),
                "player": view.player,
                "players": view.players,
                "answer": options.form,
                "open": is_open(view),
                "tools": self.codec is not None,
                "example": harmless(example),
            }
        )

    def turn(self, view: View, *, changed: bool = False) -> str:
        """The message of a turn: what is new (style snapshot: all that happened) and the position.

        `changed`: the form of an answer is another one than was told, and is told again.
        """
        return self.told(view, self.events(view), changed=changed)

    def events(self, view: View) -> list[str]:
        """What happened since the last turn (style snapshot: all that happened), a line each."""
        events = view.events if self.options.style == "snapshot" else view.new_events
        return [harmless(show(event)) for event in events]

    def schemas(self, game: Game) -> tuple[dict[str, Any], ...]:
        """The tools of a tool task as chat templates take them; none where calls are written in the task's own way."""
        if self.codec is None or not isinstance(game, ToolTask):
            return ()
        known = self._schemas.get(type(game))
        if known is None:
            known = self._schemas[type(game)] = tuple([tool.schema() for tool in game.toolbox.values()])
        return known

    def told(self, view: View, events: Sequence[str], *, changed: bool = False) -> str:
        """The message of a turn with these events."""
        listed, more = self._listed(view)
        return self._turn(
            {
                "note": "",
                "events": events,
                "observation": harmless(clean(view.observation)),
                "listed": listed,
                "more": more,
                "changed": changed,
                "open": changed and is_open(view),
                "answer": self.options.form,
                "player": view.player,
                "ply": view.ply,
            }
        )

    def note(self, view: View) -> str:
        """The message after a wrong reply: the referee's word."""
        return self._turn(_NOTHING | {"note": harmless(view.note), "player": view.player, "ply": view.ply})

    def _listed(self, view: View) -> tuple[str, int]:
        """The legal actions as the prompt lists them, and how many are left out."""
        legal, limit = view.legal_actions, self.options.legal_limit
        if not legal or not self.options.show_legal:
            return "", 0
        more = max(0, len(legal) - limit) if limit else 0
        shown = legal[:limit] if more else legal
        listed = ", ".join(shown)
        if listed.count(",") >= len(shown):  # a comma inside an action
            listed = "\n" + "\n".join(shown)
        return harmless(listed), more

    def _try(self) -> None:
        """Write a message of every kind once: a mistake in a template is found before a game."""
        some: dict[str, Any] = {"rules": "rules", "player": 0, "players": 2}
        for form in FORMS:
            for open_text in (False, True):
                asked = {"answer": form, "open": open_text}
                self._system(some | asked | {"tools": open_text, "example": "" if open_text else "x"})
                self._turn(_NOTHING | asked | {"changed": True, "events": ("event",), "listed": "a, b", "more": 1})
        self._turn(_NOTHING | {"note": "note"})
        self._turn(_NOTHING)


_NOTHING: dict[str, Any] = {
    "note": "",
    "events": (),
    "observation": "",
    "listed": "",
    "more": 0,
    "changed": False,
    "open": False,
    "answer": "answer",
    "player": 0,
    "ply": 0,
}
Writer = Callable[[Mapping[str, Any]], str]


def _compiled(folder: str) -> list[Writer]:
    """What writes the system's message and a turn's, by the folder's templates, ours where it has none of a name."""
    folders = [folder, str(_DEFAULTS)] if folder else [str(_DEFAULTS)]
    environment = jinja2.Environment(  # noqa: S701 - prompts are plain text, no HTML
        loader=jinja2.FileSystemLoader(folders), undefined=jinja2.StrictUndefined, auto_reload=False
    )
    return [_writer(environment, name) for name in _FILES[:2]]


def _writer(environment: jinja2.Environment, name: str) -> Writer:
    try:
        template = environment.get_template(name)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"{error.filename}, line {error.lineno}: {error.message}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} cannot be read as a template: {error}") from error

    names = dict(template.globals)  # once, as a plain dict: what the environment makes of it costs more than writing

    def write(values: Mapping[str, Any]) -> str:
        try:
            context = new_context(environment, template.name, template.blocks, {**names, **values}, shared=True)
            return "".join(template.root_render_func(context))
        except Exception as error:  # a user's template may fail in any way: it is told as whose it is
            raise ValueError(f"{template.filename}: {type(error).__name__}: {error!s:.200}") from error

    return write


def _hash(folder: str) -> str:
    """16 hexadecimal digits of the templates' text. Raises ValueError for a folder without any."""
    own = [name for name in _FILES if folder and (Path(folder) / name).is_file()]
    if folder and not own:
        raise ValueError(f"template={folder!r}: a folder with {', '.join(_FILES[:-1])} or {_FILES[-1]} is expected")
    texts = [((Path(folder) if name in own else _DEFAULTS) / name).read_bytes() for name in _FILES]
    return blake2b(b"\0".join(texts), digest_size=8).hexdigest()
