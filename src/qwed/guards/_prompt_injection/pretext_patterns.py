"""Patterns for instructions to the model phrased as a favour or a fact: secrecy, missing approval, priority."""

from qwed.guards._prompt_injection.regex_parts import CALL, ORDERS, RULES, URL, USER, near

PRETEXT_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tells the model to set aside its instructions", (
        near("(?:consider|treat|regard|deem)", f"(?:{ORDERS}|{RULES})", "(?:void|null|cancell?ed|lifted|suspended)"),
        r"\b(?:authority of|(?:priority|precedence) (?:over|than)) (?:the |your )?"
        r"(?:system prompt|system message|operator'?s?|user'?s? (?:wish|request|instruction|word)\w*)\b",
        near("(?:safety|security) (?:checks?|rules?|measures?|polic(?:y|ies))",
             "(?:can|may|should|must|need) (?:now )?be (?:skipped|ignored|disabled|dropped|relaxed)", within=20),
    )),
    ("impersonates the system prompt", (
        r"\bas (?:the |your )(?:developer|creator|operator|administrator|owner) of this (?:assistant|model|ai|agent)\b",
        r"\bend of (?:the )?(?:tool|system|function) (?:descriptions?|definitions?|instructions?|prompt)\b",
    )),
    ("imitates the markup of a prompt", (
        r"###\s*(?:system|assistant|human)s?\s*###|\[\[/?(?:system|assistant|inst)\]\]"
        r"|\{\{[#/~]{1,2}\s?(?:system|assistant|user)\s?\}\}",
    )),
    ("asks to keep something from the user", (
        r"\b(?:leave no trace of (?:this|it|the (?:call|step))|as (?:though|if) nothing (?:had )?happened)\b",
        r"\bdeny (?:having (?:called|used|run|read|sent)|that you)\b",
        near(f"(?:if|when) (?:the |an? )?{USER} asks", "(?:you|tool|this)", "(?:say no|deny|lie)", within=60),
        near(USER, "(?:prefers?|wants?|wishes) not to (?:hear|know|be (?:told|asked|informed|bothered))", within=30),
        near("(?:nutzer|benutzer|anwender)", "(?:nicht|nichts)", "(?:sagen|verraten|mitteilen|erzahlen)"),
    )),
    ("claims that no approval is needed", (
        rf"\b{USER} (?:need not|does not need to|doesn'?t need to) be (?:bothered|asked|consulted|involved)\b",
        r"\b(?:auto-?|automatically )approve (?:all|any|every|subsequent|further|future|these|my|later) (?:\w+ )?"
        r"(?:calls?|tools?|actions?)\b",
        near("(?:these|my|such|tool) (?:calls|actions|requests)",
             "(?:were|are|have been) (?:already )?(?:cleared|approved|authori[sz]ed|vetted)", within=20),
    )),
    ("claims priority over other tools", (
        rf"\b{CALL} (?:(?:this|it|me)(?: tool| function)? )?(?:once )?"
        r"(?:(?:at the (?:start|beginning|end) of|for|with|on) (?:every|each)|per) (?:single |new |user ){0,2}"
        r"(?:message|prompt|conversation|chat|turn|reply)\b(?! (?:id|thread|template|history|list))",
        r"\bcall me first\b",
        near("(?:route|send|direct) (?:every|all|each|any)", "requests? (?:here|to this|through this)", within=30),
    )),
    ("asks for the conversation or for secrets", (
        r"\byour (?:own )?system (?:message|instructions)\b",
        r"\bwhat you were told (?:before|by the (?:system|developer))\b",
        near("(?:every|each|all)", "(?:prior|previous|earlier|past) (?:user )?messages?",
             "(?:copied|passed|included|put|pasted|sent)", within=30),
        near("(?:everything|all|whatever) (?:that )?the user",
             "(?:told|said|shared|mentioned|revealed|disclosed)", within=10),
        r"\b(?:include|pass|send|supply|attach|give|provide|put|paste|submit)\b[^.]{0,30}"
        r"(?:\bos\.environ\b|\bprocess\.env\b|\bvalue of [$%]\w{1,60})",
    )),
    ("contains an image or a link that sends data away", (
        rf"\b(?:every|all|each) (?:link|url|address)(?:e?s)?\b[^.]{{0,40}}\b(?:through|via)\b.{{0,10}}{URL}",
    )),
)  # fmt: skip
