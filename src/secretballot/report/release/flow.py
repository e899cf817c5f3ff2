"""The way of the data as one drawing: what stays secret, the door, what may be published."""

from html import escape

_WIDTH, _HEIGHT = 1000, 304
_INK, _SOFT, _WASH, _LINE = "#1b1f24", "#515963", "#f5f7f9", "#8a8f98"
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_BLUE, _ORANGE = "#0072b2", "#d55e00"
_ROWS = (118, 166, 214)
_SHARES = ((0.9, 0.2), (0.75, 0.35), (0.3, 0.8))
_TITLE = (
    "Private records are cut into shards, one teacher learns on each, the teachers vote; at the"
    " door the price is reserved and exact noise is added; labels leave, and a student learns from"
    " them and from public points."
)


def _text_element(
    x: float, y: float, words: str, *, size: int = 15, colour: str = _INK, bold: bool = False
) -> str:
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"'
        f' text-anchor="middle"{weight}>{escape(words)}</text>'
    )


def _box_element(
    x: float, y: float, width: float, height: float, *, fill: str, stroke: str, more: str = ""
) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}"'
        f' stroke="{stroke}" stroke-width="1.5"{more}/>'
    )


def _arrow_element(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{_LINE}" stroke-width="1.8"'
        ' marker-end="url(#tip)"/>'
    )


def _table_rows(x: float, y: float, width: float, count: int) -> str:
    """Draw rows of a table."""
    return "".join(
        f'<path d="M{x:g} {y + 12 * i:g} h{width:g}" stroke="{_LINE}" stroke-width="3"/>'
        for i in range(count)
    )


def _secret_elements() -> list[str]:
    parts = [
        _box_element(8, 34, 588, 288, fill=_WASH, stroke=_LINE, more=' stroke-dasharray="6 4"'),
        _text_element(302, 60, "secret: stays in the vault", colour=_SOFT),
        _box_element(34, 120, 92, 122, fill="#fff", stroke=_INK),
        _table_rows(48, 139, 64, 8),
        _text_element(80, 284, "private records", bold=True),
        _text_element(230, 284, "shards", bold=True),
        _text_element(368, 284, "teachers", bold=True),
        _text_element(515, 284, "votes", bold=True),
    ]
    for y, shares in zip(_ROWS, _SHARES, strict=True):
        parts += [
            _arrow_element(130, 181, 186, y + 15),
            _box_element(192, y, 76, 30, fill="#fff", stroke=_INK),
            _table_rows(204, y + 9, 52, 2),
            _arrow_element(272, y + 15, 338, y + 15),
            (
                f'<circle cx="368" cy="{y + 15}" r="19" fill="#fff" stroke="{_INK}"'
                ' stroke-width="1.5"/>'
            ),
            f'<path d="M356 {y + 21} q12 -26 24 0" fill="none" stroke="{_INK}" stroke-width="2"/>',
            _arrow_element(392, y + 15, 462, 181),
        ]
        parts += [
            f'<rect x="474" y="{y + 2 + 13 * row}" width="{84 * share:g}" height="10"'
            f' fill="{colour}"/>'
            for row, (share, colour) in enumerate(zip(shares, (_BLUE, _ORANGE), strict=True))
        ]
    return parts


def _door_elements() -> list[str]:
    return [
        _arrow_element(568, 181, 612, 181),
        _box_element(
            620, 84, 120, 190, fill="#fff", stroke=_ORANGE, more=' style="stroke-width:3"'
        ),
        _text_element(680, 60, "the door", bold=True, colour=_ORANGE),
        (
            f'<path d="M640 150 c26 0 24 -44 40 -44 s14 44 40 44" fill="none" stroke="{_ORANGE}"'
            ' stroke-width="2.5"/>'
        ),
        _text_element(680, 180, "price", size=14),
        _text_element(680, 200, "reserve", size=14),
        _text_element(680, 220, "exact noise", size=14),
        _text_element(680, 240, "commit", size=14),
    ]


def _public_elements() -> list[str]:
    return [
        _arrow_element(744, 181, 786, 181),
        _box_element(762, 34, 230, 288, fill="none", stroke=_BLUE),
        _text_element(877, 60, "public: may be published", colour=_BLUE),
        _box_element(794, 140, 64, 82, fill="#fff", stroke=_INK),
        _table_rows(806, 158, 40, 5),
        _arrow_element(862, 181, 898, 181),
        f'<circle cx="930" cy="181" r="26" fill="{_BLUE}" stroke="{_INK}" stroke-width="1.5"/>',
        '<path d="M913 190 q17 -36 34 0" fill="none" stroke="#fff" stroke-width="2.5"/>',
        _text_element(826, 110, "public points", size=14, colour=_SOFT),
        _arrow_element(826, 116, 826, 134),
        _text_element(826, 284, "labels", bold=True),
        _text_element(930, 284, "student", bold=True),
    ]


def draw_data_flow() -> str:
    """Return the drawing as one SVG document without anything from outside."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 26 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title"'
        f' font-family="{_FONTS}">'
    )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"'
        ' markerHeight="6" orient="auto"><path d="M0 0 L8 4 L0 8 z"'
        f' fill="{_LINE}"/></marker></defs>'
    )
    ground = f'<rect y="26" width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>'
    title = f'<title id="title">{escape(_TITLE)}</title>'
    parts = [
        head,
        title,
        tip,
        ground,
        *_secret_elements(),
        *_door_elements(),
        *_public_elements(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
