"""What several outlets count specially in a text: emoji, graphemes, links."""

import regex

# -- emoji ---------------------------------------------------------------------------------------
# The sequences that Unicode recommends (Emoji 16), by their shapes. Anything else that is glued
# together with joiners is several emoji, as every network shows it.

_JOINER = "\u200d"
_LOOK = "\ufe0f?"
_SKIN = r"\p{Emoji_Modifier}?"
_ADULT = f"[👨👩🧑]{_SKIN}"
_FACING = f"(?:{_JOINER}➡{_LOOK})?"
_SHAPES = (
    r"\p{Regional_Indicator}{2}",
    f"[0-9#*]{_LOOK}\u20e3",
    "🏴[\U000e0061-\U000e007a]{5}\U000e007f",
    f"{_ADULT}{_JOINER}❤{_LOOK}{_JOINER}(?:💋{_JOINER})?{_ADULT}",
    f"{_ADULT}{_JOINER}(?:🤝|🐰|🫯){_JOINER}{_ADULT}",
    f"🫱{_SKIN}{_JOINER}🫲{_SKIN}",
    f"[👨👩🧑](?:{_JOINER}[👨👩🧑])?{_JOINER}[👦👧🧒](?:{_JOINER}[👦👧🧒])?",
    f"{_ADULT}{_JOINER}[⚕⚖✈]{_LOOK}",
    f"{_ADULT}{_JOINER}[🌾🍳🍼🎄🎓🎤🎨🏫🏭💻💼🔧🔬🚀🚒🦯🦼🦽🦰🦱🦲🦳]{_FACING}",
    rf"(?:\p{{Emoji_Modifier_Base}}{_SKIN}|[🏋🏌🕵⛹]{_LOOK}|[👯🤼🧞🧟])"
    f"{_JOINER}[♀♂]{_LOOK}{_FACING}",
    f"[🏃🚶🧎]{_SKIN}{_JOINER}➡{_LOOK}",
    f"🏳{_LOOK}{_JOINER}(?:🌈|⚧{_LOOK})",
    f"🏴{_JOINER}☠{_LOOK}",
    f"🐕{_JOINER}🦺|[🐈🐦]{_JOINER}⬛|🐦{_JOINER}🔥|🐻{_JOINER}❄{_LOOK}",
    f"🍋{_JOINER}🟩|🍄{_JOINER}🟫|⛓{_LOOK}{_JOINER}💥",
    f"❤{_LOOK}{_JOINER}(?:🔥|🩹)|👁{_LOOK}{_JOINER}🗨{_LOOK}",
    f"😮{_JOINER}💨|😵{_JOINER}💫|😶{_JOINER}🌫{_LOOK}|🙂{_JOINER}[↔↕]{_LOOK}",
    r"\p{Emoji_Modifier_Base}\p{Emoji_Modifier}",
    r"\p{Emoji_Presentation}",
    rf"[\p{{Emoji}}--[0-9#*]]{_LOOK}",
)
EMOJI = regex.compile("|".join(_SHAPES), regex.V1)

# -- graphemes -----------------------------------------------------------------------------------

_FLAG = regex.compile(r"\p{Regional_Indicator}{2}")
_GRAPHEME = regex.compile(r"\X")


def graphemes(text: str) -> list[str]:
    """The user-perceived characters of a text (extended grapheme clusters of UAX #29)."""
    return _GRAPHEME.findall(text)


def grapheme_count(text: str) -> int:
    """How many graphemes. Flags are folded first: `\\X` takes quadratic time on a row of them."""
    return len(_GRAPHEME.findall(_FLAG.sub("x", text)))


# -- links ---------------------------------------------------------------------------------------
# The grammar of twitter-text 3, which Mastodon took over from X. Possessive quantifiers keep it
# linear: no text makes it back-track.

_LATIN = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f"
    "\u0272\u0289\u028b\u02bb\u0300-\u036f\u1e00-\u1eff"
)
_LETTERS = f"a-z0-9\u0400-\u04ff{_LATIN}"
_PATH = rf"[{_LETTERS}!*';:=+,.$/%#\[\]\-\u2013_~@|&]"
_PATH_FILL = r"[!*';:,.$%\[\]\u2013~@|&]"  # what a path may contain and not end with
_PATH_END = rf"[{_LETTERS}+\-=_#/]"
_PARENTHESES = rf"\((?:{_PATH}++|{_PATH}*+\({_PATH}++\){_PATH}*+)\)"
QUERY = r"\?(?:[!?*'@();:$%\[\].,~|+]*+[a-z0-9\-_&=#/]++)++"
LINK_TAIL = (
    rf"(?::[0-9]++)?+(?P<path>/(?:{_PATH_FILL}*+(?:{_PATH_END}|{_PARENTHESES}))*+)?+(?:{QUERY})?+"
)

# What a host's labels are made of: not punctuation, not space, not control of direction.
HOST_CHARACTER = (
    r"[^!'#%&()*+,\\\-./:;<=>?@\[\]\^_{|}~$\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029"
    r"\u202f\u205f\u3000\ufffe\ufeff\uffff\u202a-\u202e\u061c\u200e\u200f\u2066-\u2069]"
)
LATIN_HOST_CHARACTER = f"[-a-z0-9{_LATIN}]"
