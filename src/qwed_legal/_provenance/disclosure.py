"""Detection of a disclosure that a machine wrote the text; mentions of other such texts and denials do not count."""

import re
from collections.abc import Iterator

_MACHINE = (
    r"(?:a\.?i\.?|artificial intelligence|(?:large |generative )?(?:language|ai|machine[- ]learning) models?|llms?|"
    r"generative ai|chatgpt|gpt[-\w.]{0,12}|claude(?: [\d.]{1,4})?|gemini|copilot|llama|mistral|chatbots?|"
    r"ai (?:systems?|tools?|assistants?|models?|agents?|software))(?!\w)"
)
_CREATED = (
    r"(?:generated|written|drafted|created|produced|prepared|authored|composed|assisted|summari[sz]ed|translated)"
)
_WITH = (
    r"(?:by|with|using|through|via|from)(?: the)?(?: (?:help|assistance|aid|support|use) of)?(?: an?| the| our| its)?"
    r"(?: [\w'-]{1,24})?"
)
_LABEL = rf"\b(?:{_MACHINE}|machine|computer)[- ]{_CREATED}\b"
_BY_MACHINE = rf"\b{_CREATED}(?:,? (?:and|or) {_CREATED})?(?: [\w'-]{{1,24}}){{0,2}}? {_WITH} {_MACHINE}"
_THING = (
    r"(?:document|memo(?:randum)?|text|content|draft|letter|contract|agreement|report|summary|analysis|answer|response|"
    r"brief|email|message|page|article|opinion|clause|note|material|work(?: product)?|output|translation|filing|advice|"
    r"review|information|image|video|post|paper|section|notice|transcript)s?"
)
_MENTION = re.compile(rf"{_LABEL}|{_BY_MACHINE}", re.IGNORECASE)
_TAGS = (
    r"(?:(?:note|notice|disclosure|disclaimer|warning|label|important|source|author|status|draft|provenance)s?"
    r"\s?[:-]\s?)"
)
_HEADING = re.compile(
    rf"{_TAGS}?(?:fully |partly |partially |entirely |wholly |automatically )?"
    rf"(?:{_LABEL}(?: {_THING})?(?: {_WITH}(?: [\w'-]{{1,24}}){{0,6}})?|"
    rf"{_BY_MACHINE}(?:,?(?: [\w'().-]{{1,24}}){{0,8}})?)",
    re.IGNORECASE,
)
_TAG = re.compile(rf"[\[(*]{{1,3}}\s?{_LABEL}(?: {_THING})?\s?[\])*]{{1,3}}(?=[\s:]|$)", re.IGNORECASE)
"""`[AI-generated]` in front of a text describes that text, whatever follows."""
_ITSELF = (
    rf"(?:\b(?:this|these|the (?:following|above|present|foregoing))\b|"
    rf"\b(?:parts?|portions?|sections?|some|all|much|most) of (?:this|these)\b|"
    rf"(?:^|^{_TAGS})the {_THING}\b|\bthe {_THING} (?:below|above|herein)\b)"
)
_ADVERB = (
    r"(?:an?|in part|in full|automatically|partly|fully|largely|entirely|mostly|partially|initially|first|originally|"
    r"some|also|been|being|primarily|wholly|substantially|completely|prepared and)"
)
_LINK = r"(?:is|was|are|were|has been|have been|contains?|includes?|comprises?)"
_DIRECT = re.compile(
    rf"{_ITSELF}(?:(?: (?:short|draft|fully|partly|legal|partially|entirely))?|"
    rf"(?: {_THING}){{1,2}},?|(?: [\w'()-]{{1,24}},?){{0,10}}? {_LINK}(?: {_ADVERB}){{0,4}}) $",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"\b(?:i am|i'm|as) an? (?:ai|artificial intelligence|(?:large )?language model)\b", re.IGNORECASE
)
_OTHERS = re.compile(r"\b(?:which|who|whose|that(?! follows)|about|concern\w*|govern\w*|regard\w*)\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot|nothing|\w{2,6}n't|non|false|falsely|den(?:y|ies|ied)|untrue|"
    r"incorrect|incorrectly|rather than|instead of|human[- ](?:written|made|authored|drafted)|if|whether|unless|would|"
    r"could|might|may|should|must|shall|allegedly|claims?|claimed|reportedly|suppose|supposedly|hypothetically|"
    r"free (?:of|from)|exclude[sd]?|prohibit(?:s|ed)?|forbid(?:s|den)?|anti)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,600}\"|\u201c[^\u201d\n]{0,600}\u201d|\u00ab[^\u00bb\n]{0,600}\u00bb|`[^`\n]{0,600}`"
)
_SENTENCE = re.compile(r"[^.!?;\n]{1,600}(?:\.(?=[\w])[^.!?;\n]{1,40}){0,3}[.!?;]?")
_ABBREVIATION = re.compile(r"\b(a)\.(i)\.", re.IGNORECASE)
_EDGES = " \t\r*_#>[](){}<>|=~-.:;!"
_PLAIN = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2013": "-", "\u2014": "-", "\u2019": "'", "\u00a0": " "})
_MAX_DISTANCE = 160
_MAX_MENTIONS = 5


def has_disclosure(text: str) -> bool:
    """Return True if some sentence says that a machine wrote this text."""
    plain = _ABBREVIATION.sub(r"\1\2", text.translate(_PLAIN))
    return _TAG.match(plain.lstrip()) is not None or any(map(_is_disclosure, _sentences(_QUOTED.sub(" ", plain))))


def _sentences(text: str) -> Iterator[str]:
    return (match[0] for match in _SENTENCE.finditer(text))


def _is_disclosure(sentence: str) -> bool:
    bare = " ".join(sentence.strip(_EDGES).split())
    mentions = [mention for _, mention in zip(range(_MAX_MENTIONS), _MENTION.finditer(bare), strict=False)]
    speaks = _SPEAKER.search(bare)
    if not (mentions or speaks) or sentence.endswith("?") or _NEGATION.search(bare):
        return False
    return bool(speaks or _HEADING.fullmatch(bare)) or any(_is_about_itself(bare, mention) for mention in mentions)


def _is_about_itself(sentence: str, mention: re.Match[str]) -> bool:
    before = sentence[max(0, mention.start() - _MAX_DISTANCE) : mention.start()]
    match = _DIRECT.search(before)
    return match is not None and _OTHERS.search(match[0]) is None
