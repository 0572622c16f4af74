"""A page taken apart, and text that means harm."""

import html
import re
from html.parser import HTMLParser

__all__ = ["HOSTILE", "Page"]

HOSTILE = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</style><style>*{display:none}</style>",
    "</script><script>document.title='owned'</script>",
    "{{ 7 * 7 }} {% raw %} <!--",
    "\u202eright to left\u202c\u200b\x1b[31m\x00",
    "a" * 300,
    "Ω☃ 𝒳 עברית",
]


class Page(HTMLParser):
    """The tags, attributes and text of a page; `open` is empty where every tag is closed."""

    VOID = ("meta", "br", "link", "wbr", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self.source = text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        self.text += data
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def values(self, name: str) -> list[str]:
        """Of an attribute, wherever it stands."""
        return [value for key, value in self.attributes if key == name]

    def policy(self) -> str:
        """The content security policy."""
        return html.unescape(re.findall(r'Content-Security-Policy" content="(.*?)"', self.source)[0])

    def assert_harmless(self) -> None:
        """No tag is left open, and nothing is loaded or run but by the page's own scripts."""
        assert self.open == []
        assert not {"img", "iframe", "object", "embed", "link", "base", "form", "b-", "font"} & set(self.tags)
        assert not [name for name, _ in self.attributes if name.startswith("on") or name in ("style", "src", "srcset")]
        assert not [value for value in self.values("href") if re.match(r"\s*(\w+:|//)", value)]
        assert self.tags.count("style") == 1
