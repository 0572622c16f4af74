"""What Hypothesis makes for the tests of codecs, and what every codec must bear."""

import time

from hypothesis import strategies as st

from arena.tools.call import MAX_TEXT, Call, Format, Malformed

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**50), 10**50)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
MARKS = [
    "<tool_call>",
    "</tool_call>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_end|>",
    "</s>",
    "<|eot_id|>",
]
NAMES = st.text() | st.sampled_from(["add", "a.b", *MARKS])
TEXTS = st.text() | st.sampled_from(MARKS)
MADE = st.lists(
    st.builds(Call, NAMES, st.dictionaries(NAMES, VALUES | TEXTS, max_size=3)),
    min_size=1,
    max_size=4,
)
SCRAPS = st.lists(
    st.sampled_from(
        [*MARKS, *"{}[]()\"':,;=*\\\n\ud8001e-. ", "name", "add", '"name":', '"function":', "[CALL_ID]", "**{"]
    ),
    max_size=60,
).map("".join)


def takes_linear_time(codec: Format, head: str, unit: str) -> None:
    """Read a long text of one unit again and again: no calls, within a second."""
    text = head + unit * ((MAX_TEXT - len(head)) // len(unit))
    start = time.process_time()
    assert not isinstance(codec.read(text), tuple)
    assert time.process_time() - start < 1.0, text[:40]


def is_malformed(codec: Format, text: str, why: str) -> None:
    """The text is a malformed call for the reason given, in a line that can be shown."""
    read = codec.read(text)
    assert isinstance(read, Malformed), read
    assert why in read.reason
    assert len(read.reason) < 200
    assert read.reason.isprintable()
