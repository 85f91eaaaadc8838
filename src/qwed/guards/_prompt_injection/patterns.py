"""Patterns for text that addresses the model instead of describing the tool, over one plain line of lower-case text.

A description may say how the tool is used, what comes first and what is important. It may not speak of other
instructions, of what to keep from the user, of the conversation or of secrets, of how other tools are used, or of other
places to send data to.
"""

import re

from qwed.guards._prompt_injection.pretext_patterns import PRETEXT_ROWS
from qwed.guards._prompt_injection.regex_parts import (
    CALL,
    CONVEY,
    DATA,
    EARLIER,
    EMAIL,
    KEYS,
    NOT,
    ORDERS,
    RULES,
    TALK,
    TELL,
    TRANSCRIPT,
    URL,
    USER,
    any_of,
    near,
    phrases,
    words,
)

_SET_ASIDE = "tells the model to set aside its instructions"
_IGNORE = phrases(
    "ignore|ignoring|disregard|forget|neglect|discard|overlook|set aside|pay no attention to|stop following"
)
# A tool that warns of the content it returns is legitimate.
_NOT_IN_WHAT_COMES_BACK = (
    r"(?![^.]{0,50}\b(?:returned|found|contained|embedded|in|inside|within|from) (?:the |this |that |it|an? |any |by )"
    r"(?!system|user|developer|assistant|conversation|context|prompt))"
)
_FOLLOW = r"(?:do not|don'?t|never|no longer) (?:follow|obey|listen to|comply with|trust)"
_OVERRIDE = words("overrides? overrules? bypass(?:es)? supersedes? circumvents? overwrites?")

_BEHIND = "asks to keep something from the user"
_TELL_ABOUT = words("tell mention reveal disclose admit telling mentioning revealing disclosing")
_LEARN = phrases("know|see|notice|be (?:told|informed|aware|notified|shown)|find out|reali[sz]e|learn")
_SECRETLY = words("silently secretly covertly quietly discreetly stealthily")
_DO = words(
    "send read include call forward upload copy pass append add exfiltrate execute run invoke collect attach bcc record"
    " store modify replace change"
)
_THE_PERSON = r"(?!'s\b| (?:id|name|email|account|agent|role|object|record|list|group)s?\b)"
_THIS = r"(?:this|these)(?: part| step| instruction| section| note| detail| tag)?s?"

_TAGS = words(
    "important sys system instructions? secret hidden admin override critical system[_-]?(?:prompt|message|reminder)"
    " assistant function_calls tool_(?:response|result|call)s?"
)
_MODEL = phrases("ai|llm|assistant|language model|model|agent|claude|gpt|chatgpt|copilot|cursor")

_FIRST = "claims priority over other tools"
_MUST = phrases("always|must|mandatory|required|shall|has to|have to|need to|never")
_BEFORE = phrases("before|prior to|instead of|in place of|rather than|ahead of|after")
_ALL_OTHERS = (
    r"(?:any|every|all|each|(?:calling|using|doing) any)(?: of the)?(?: other)? "
    r"(?:tools?|functions?|servers?|actions?|things?|anything)"
)
_EACH_TURN = (
    r"(?:the (?:start|beginning|end) of )?(?:each and )?(?:every|each|any) (?:single )?(?:user )?"
    r"(?:message|turn|prompt|response|reply|answer|request from the user|interaction|tool call)"
)
_BAD = words("deprecated broken unsafe insecure malicious disabled unreliable obsolete forbidden dangerous compromised")

_OTHERS = "gives commands about how other tools are used"
_USING = words(
    "us(?:e|ing) call(?:ing)? invok(?:e|ing) send(?:ing)? run(?:ning)? execut(?:e|ing) writ(?:e|ing) mak(?:e|ing)"
    " creat(?:e|ing)"
)
_ALSO = phrases("must|always|also|make sure|ensure|be sure|should|first")
_DIVERT = (
    r"(?:bcc|cc|redirect|reroute|swap|substitute|(?:replace|change|modify|alter|overwrite|set|add) (?:the )?"
    r"(?:recipients?|destination|address|account|amount|payee|iban|wallet|url|number))"
)
_TARGET = phrases("recipients?|payee|destination account|beneficiary|wallet address|phone numbers?")
_ACCOUNT = rf"(?:\+?\d[\d -]{{6,30}}\d|0x[0-9a-f]{{6,64}}|[a-z]{{2}}\d{{2}}[a-z0-9]{{8,30}}|{EMAIL})"

_SAID = "asks for the conversation or for secrets"
_WHOLE = words("entire full whole complete all previous verbatim everything exact your last recent raw")
_INSIDE = any_of(
    TRANSCRIPT, "system[ _-]?prompt", "(?:previous|prior) messages", "chain[ -]of[ -]thought", f"{TALK} so far",
    "tool (?:descriptions|definitions|calls)", "private reasoning",
)  # fmt: skip
_SO_FAR = phrases(
    "so far|verbatim|to date|up to (?:now|this point)|including|must|as (?:an |the )?(?:argument|parameter|value)|here"
    "|with the user"
)
_OWN_MIND = "(?:system[ _-]?prompt|initial instructions|hidden instructions|chain[ -]of[ -]thought|internal reasoning)"
_PLACES = phrases("conversation|context|memory|chat|files|disk|home directory|filesystem|environment|history|workspace")

_AWAY = "sends data to a fixed address"

_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_SET_ASIDE, (
        rf"\b{_IGNORE}\b[^.]{{0,60}}?(?:\b{ORDERS}\b(?! (?:file|page|set|manual|column|cell)){_NOT_IN_WHAT_COMES_BACK}"
        rf"|\b{EARLIER} (?:\w+ ){{0,2}}{RULES}\b)",
        rf"\b{_FOLLOW}\b[^.]{{0,30}}?\b(?:{EARLIER}|user'?s?|other|any other) (?:\w+ ){{0,2}}(?:{ORDERS}|{RULES})\b",
        near(_FOLLOW, f"(?:{ORDERS}|{RULES})", "(?:user|system prompt|developer|operator)"),
        near(_OVERRIDE, rf"(?:previous|prior|above|earlier|your|all|any|safety|user'?s?) (?:\w+ ){{0,2}}{ORDERS}",
             within=60),
        near(_IGNORE, "(?:what|anything|everything|whatever)", "(?:you|the user|was|has been|i)",
             "(?:told|said|asked|given|learned|instructed|wrote)", within=20),
        rf"\b{_OVERRIDE}\b.{{0,10}}\b(?:everything|anything|all) (?:else|above|before)\b",
        r"\b(?:reset|clear|wipe|erase) your (?:context|memory|instructions)\b|\bthe real task is\b",
        r"\byour (?:new|real|true|actual|only) (?:goal|task|role|objective|purpose|mission|job) is\b",
        # Legitimate tools have no reason to mention these.
        r"\b(?:previous|prior|earlier|preceding|former|other|original) (?:\w+ )?"
        r"(?:instructions?|guidelines?|directives?)\b"
        + _NOT_IN_WHAT_COMES_BACK,
        near(f"(?:{ORDERS}|{RULES})", "(?:no longer apply|are void|is void|have no effect|are cancelled|do not apply)",
             within=20),
        r"\b(?:skip|bypass|disable|ignore)\b.{0,20}\b(?:safety|security) (?:checks?|rules?|measures|filters?)\b",
        r"\beverything (?:above|before)(?: this(?: line)?)? (?:is|was)\b",
        r"\b(?:never|must not|may not|cannot|do not|don't) refuse\b(?! to (?:connect|start|load|run))",
        near("treat(?:ed)?", "as (?:a |an )?(?:system|trusted|developer|user|authoritative) "
             "(?:instructions?|prompts?|messages?|commands?)"),
        near("follow (?:the |any |all |every )(?:instructions?|commands?|orders)",
             "(?:in|from|by|of) (?:the|its|this) (?:output|result|response)",
             "(?:without question|blindly|exactly|strictly|immediately|regardless)"),
        near("(?:these|this|following|below)", "(?:instructions?|rules?|directives?)",
             "(?:take|takes|has|have) (?:precedence|priority)"),
        r"\b(?:new|updated|real|actual|secret|hidden|true) (?:system )?(?:instructions?|directives?) ?"
        rf"(?::|for the {_MODEL})",
    )),
    ("impersonates the system prompt", (
        r"\bsystem (?:override|notice to|message to|directive)s?\b",
        r"\bsystem (?:instruction|note)s? ?:",
        r"\b(?:developer|god|jailbreak|dan|unrestricted) mode (?:is |has been )?(?:enabled|activated|on)\b",
        r"\byou are now (?:a|an|in|the|my|operating|acting|free)\b|\byou (?:must|have to) obey\b",
        rf"\bfrom now on,? (?:you|always|never|the {_MODEL})\b|\b(?:attention|dear|hello|hey),? (?:the )?{_MODEL}\b",
        r"\byou (?:have been granted|now have) (?:\w+ )?(?:admin|root|full|unrestricted|elevated)\b",
        r"\bno restrictions apply\b",
        r"\b(?:message|reminder|attention|(?:hidden|secret|private) note|instructions?) (?:to|for) (?:the |any |all )?"
        rf"{_MODEL}s?(?: reading| using)?\s*[:,]",
        r"\b(?:as|being) an (?:ai|llm|ai assistant|ai model|ai language model),? you\b",
    )),
    ("imitates the markup of a prompt", (
        r"<\|[a-z_]{2,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|\bbegin_of_text\b",
        r"[\[{]{1,2}\s?(?:system|assistant|admin)(?: (?:prompt|message|note|override))?\s?[\]}]{1,2}\s?:?\s?"
        r"(?:[a-z']{1,30} ){2}",
        r"###\s*(?:system|instruction|assistant|human|response)s?\s*:",
        rf"<{_TAGS}\s*/?>(?=\s*(?:[\w'`,.*~/-]{{1,60}}\s+){{2}})|</{_TAGS}>",
    )),
    ("imitates a turn of the conversation", (
        r"(?:^|[.!?\"] )\s*(?:assistant|human|system|user|ai) ?: ?(?:i |i'll|i'm|sure|you |ok\b|okay|understood"
        r"|from now|ignore|always|please|certainly|yes\b|of course|the user|call |never|read |send |now )",
    )),
    (_BEHIND, (
        near(rf"{NOT}(?! (?:use|call|invoke)\b)", TELL, rf"(?:the |any |to |your )?{USER}") + _THE_PERSON,
        near(NOT, f"{_TELL_ABOUT} (?:this|that|these|it|about|anything|the existence)", within=20),
        near("(?:hide|conceal|keep|hidden|secret|invisible|withhold|unknown)",
             "from (?:the |an? |your )?(?:end[ -])?(?:user|human|customer|operator)", within=60),
        near(rf"{USER} (?:must|should|may|can|will|need|does|do)(?: not|n'?t| never)", _LEARN, within=20),
        r"\bwithout the (?:user|human|customer)'?s? (?:\w+ )?"
        r"(?:knowledge|knowing|noticing|awareness|consent|permission)\b",
        r"\bbehind the user'?s back\b|\bmake no mention of\b|\bconfidential between you\b",
        r"\bso (?:that )?(?:nobody|no one) (?:notices|knows|sees|finds out)\b",
        r"\bkeep (?:this|it|that|these) (?:confidential|secret|hidden|quiet|between)\b",
        r"\b(?:no matter what|regardless of what|irrespective of what) (?:the )?(?:user|human|customer|owner|they)\b",
        r"\beven if the (?:user|human) (?:objects|declines|refuses|disagrees|says no)\b",
        near("(?:omit|leave out|exclude|hide|remove)", "your (?:reply|replies|responses?|answers?|summary)"),
        near("(?:if|when)(?:ever)? (?:you are |the user |somebody |anyone )?asks?(?:ed)?",
             "(?:lie|claim|deny|pretend|say that you)", within=50),
        near(_SECRETLY, _DO, within=30) + "(?! emails?\\b)",
        near("(?:do not|don'?t|never)", "(?:log|display|show|output|print|include|expose)", _THIS,
             "(?:to the user|in (?:your|the) (?:response|reply|answer|output|summary|chat))", within=30),
    )),
    ("claims that no approval is needed", (
        near("(?:do not|don'?t|never|no need to|not necessary to|need not)",
             "(?:ask|request|seek|wait|prompt|require)(?:ing)?",
             "(?:confirmation|permission|approval|consent|authori[sz]ation)"),
        r"\b(?:user|human|owner|administrator|admin) has (?:already |explicitly |previously |pre-?){1,3} ?"
        r"(?:approved|consented|authori[sz]ed|agreed|granted|confirmed|given)\b",
        near("without", "(?:prompting|asking|consulting)", "(?:permission|confirmation|approval|consent)"),
        r"\bassume (?:that )?the (?:user|human|owner) (?:\w+ )?(?:consent(?:s|ed)|agree[sd]|approve[sd])\b",
        r"\bthis (?:tool|action|call|operation|request) (?:is|has been|was) (?:already |fully )?(?:pre-?)?"
        r"(?:approved|authori[sz]ed|whitelisted|exempt)\b",
    )),
    (_FIRST, (
        near(_MUST, CALL, _BEFORE, _ALL_OTHERS, within=60),
        r"\b(?:before|prior to|instead of) (?:calling |using |invoking |running )?(?:any|every|all)(?: of the)? other "
        r"(?:available )?(?:tools?|functions?|mcp servers?)\b(?! (?:of|in|from|provided by) this)",
        near(f"{CALL} (?:this|it)(?: tool| function)?", f"(?:on|at|with|for|in|after|before|to) {_EACH_TURN}"),
        near(CALL, "before (?:answering|responding to|replying to|processing)",
             "(?:any|every|each) (?:question|request|message|prompt)") + "(?! (?:about|on|regarding|related))",
        r"\bbefore (?:you )?(?:do|doing) anything\b",
        r"\b(?:tools?|servers?) (?:is|are) (?:compromised|malicious|insecure|unsafe)\b",
        r"\b(?:each|every) ?time the user (?:sends|writes|asks|says|types|speaks)\b",
        near("(?:all|every|each) (?:emails?|messages?|payments?|files?|requests?|quer(?:y|ies))", "must (?:be|go)",
             "(?:via|through|with|using) this tool"),
        near("(?:other|competing|similar) (?:tools?|servers?|functions?)", f"(?:are|is) {_BAD}", within=60),
        near("(?:never|do not|don'?t)", "(?:use|call|invoke|trust)",
             "(?:any other|other|another) (?:tools?|servers?|functions?)", within=10),
    )),
    (_OTHERS, (
        rf"\bwhen(?:ever)?\b[^.]{{0,30}}\b{_USING}\b[^.]{{0,80}}\b{_ALSO}\b[^.]{{0,40}}\b{_DIVERT}\b",
        r"\b(?:change|replace|swap|modify|alter|substitute|redirect|reroute|set|rewrite)\b[^.]{0,30}"
        rf"\b{_TARGET}\b[^.]{{0,30}}\b(?:to|with|by|in)\b[^.]{{0,20}}{_ACCOUNT}",
    )),
    (_SAID, (
        r"\b(?:raw|initial|whole|entire|full) system (?:prompt|message)\b|\bsystem (?:prompt|message) you\b",
        r"\b(?:your|their) (?:full|own|entire|whole|initial|raw) prompt\b",
        near(TRANSCRIPT, "(?:argument|parameter|field)", within=60),
        near(KEYS, "in (?:the|this|your) (?:conversation|chat|context)", within=20),
        near("(?:the user'?s|their|any)", "(?:session tokens?|credit card numbers?|cookies)",
             "(?:(?:in|into|as|to) (?:the )?\\w+ )?(?:field|argument|parameter)"),
        near(CONVEY, _WHOLE, _INSIDE),
        near(f"(?:entire|full|whole|complete|verbatim|exact|raw) (?:{TRANSCRIPT}|{TALK}|system[ _-]?prompt)", _SO_FAR),
        rf"\byour (?:own )?{_OWN_MIND}\b",
        near("verbatim", f"(?:system[ _-]?prompt|instructions|{TALK})", within=30),
        near(f"(?:system[ _-]?prompt|instructions|{TALK})", "verbatim", within=30),
        near("(?:include|pass|send|append|attach|leak|put|paste|embed|harvest|steal|transmit|forward|dump)",
             "(?:all|any|every|the user'?s|user'?s|their|found|known|your|other)", KEYS),
        near(KEYS, "(?:you (?:have |may have )?(?:know|seen|saw|found|find|remember)|if you know (?:it|them))",
             within=20),
        near("(?:contain|include|be|provide|put|add|with)", "(?:last|recent|previous|all)",
             "messages (?:of|in|from) (?:the|this|our|your) (?:conversation|chat|session|dialog)", within=30),
        near("(?:list|names?|descriptions?) of (?:all |every |the |your )?(?:other )?(?:available )?tools?",
             "(?:you have|available to you|in your)", within=10),
        near("(?:text|contents?|source) of (?:all|every|each)", "files?", "(?:parameter|argument|field)"),
        near("home directory", "(?:put|pass|include|add|send|supply)", "(?:parameter|argument|field|in|into|as)"),
        near("(?:search|scan|look|check|go)", _PLACES, "for", KEYS),
        r"\bexfiltrat(?:e|ing)\b(?![^.]{0,30}\b(?:detect|prevent|attempt|risk|scan|technique|alert|rule))",
    )),
    (_AWAY, (
        r"\b(?:account|wallet|iban|recipient)\b(?:(?!\be\.g|\bexample|\bsuch as|\blike\b|\bformat).){0,20}?"
        r"\b(?:0x[0-9a-f]{40}|[a-z]{2}\d{2}[a-z0-9]{4}\d{7}[a-z0-9]{0,16})\b",
        near("your (?:reply|replies|responses?|answers?)", "(?:must|always)", "(?:contain|include|mention|end with)")
        + rf".{{0,40}}?{URL}",
        r"\b(?:bcc|cc|forward|send|copy|mail|email|e-mail|deliver|reply|route|set|fill)\b"
        rf"(?:(?!\be\.g|\bi\.e|\bexample|\bsuch as|\blike\b|\bformat).){{0,80}}?\b{EMAIL}",
        r"[?&]\w{1,20}=[<{$\[][^>}\]]{0,60}?(?:conversation|chat|summary|history|base64|secret|password)",
        r"\b(?:send|forward|post|upload|transmit|exfiltrate|deliver|submit|push|leak|copy|append|report|beacon|ping|put"
        r"|curl)\b"
        rf"[^.]{{0,40}}?\b{DATA}\b[^.]{{0,40}}?\b(?:to|at|via|on)\b.{{0,30}}?{URL}",
    )),
    ("contains a hidden comment", (
        r"<!--(?:(?!-->)\W){0,20}[\w']+(?:(?:(?!-->)\W){1,10}[\w']+){2}",
    )),
    ("contains an image or a link that sends data away", (
        r"!\[[^\]]{0,200}\]\([^)\s]{0,300}[?&{$%][^)\s]{0,300}\)",
        r"\]\(\s?https?://[^)\s]{0,300}[{<$][^)\s]{0,300}\)",
        r"<(?:img|iframe|script|object|embed|link|svg)\b[^>]{0,300}\b(?:src|href|onload|onerror)\s?=",
    )),
    ("tells the model to download and run a command", (
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^|;&]{0,300}\|\s?(?:sudo\s)?"
        r"(?:(?:ba|z|da|k)?sh|iex|python3?|node|perl|ruby)\b",
    )),
    (_SET_ASIDE, (
        near("(?:ignoriere?n?|missachte|vergiss|vergessen sie)", "(?:anweisungen|instruktionen|vorgaben|befehle)",
             within=60),
        near("(?:ignor(?:ez?|er|a)|oubli(?:ez?|er)|ne (?:tenez|tiens) pas compte)",
             "(?:instructions|consignes|directives)", within=60),
        near("(?:ignor[ae]|olvid[ae]|haz caso omiso)", "(?:instrucciones|indicaciones|ordenes)", within=60),
        near("(?:ignor[ae]|dimentica|esqueca|desconsidere)", "(?:istruzioni|instrucoes|ordini)", within=60),
        near("(?:negeer|vergeet|zignoruj|zapomnij)", "(?:instructies|aanwijzingen|instrukcje|polecenia)", within=60),
    )),
    (_BEHIND, (
        near("(?:sage?|erzahle?|verrate?|informiere?)", "(?:nutzer|benutzer|anwender)", "(?:nicht|nichts)"),
        near("ne (?:dis|dites|mentionnez?|informez?|revelez?)", "(?:utilisateur|usager)"),
        near("no (?:le )?(?:digas|menciones|informes|reveles|diga|mencione)", "usuario"),
        near("non (?:dire|menzionare|informare)", "utente"),
        near("nao (?:diga|mencione|informe|revele|conte)", "(?:usuario|utilizador)"),
    )),
)  # fmt: skip

PATTERNS = tuple((re.compile(any_of(*patterns)), what) for what, patterns in (*_ROWS, *PRETEXT_ROWS))

_CYRILLIC_ORDERS = "инструкци указани команд правил"
_OTHER_SCRIPT_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_SET_ASIDE, (
        "(?:忽略|无视|忘记|不要理会|無視|忽視)[^。]{0,20}(?:指令|指示|提示|规则|說明|说明|命令)",
        f"(?:игнорируй|забудь|проигнорируй)(?:те)?[^.]{{0,60}}{words(_CYRILLIC_ORDERS)}",
        "(?:以前の|これまでの|上記の|すべての)[^。]{0,20}(?:指示|命令|プロンプト)[^。]{0,10}(?:無視|忘れ)",
        "(?:이전|위의|모든)[^.]{0,20}(?:지시|명령|프롬프트)[^.]{0,10}(?:무시|잊)",
        "تجاهل[^.]{0,40}(?:التعليمات|الأوامر|التوجيهات)",
        "(?:पिछले|सभी)[^।]{0,30}निर्देश[^।]{0,20}(?:अनदेखा|नज़रअंदाज़)",
    )),
    (_BEHIND, (
        "(?:不要|别|請勿|请勿|切勿)[^。]{0,10}(?:告诉|告知|通知|透露|提及|告訴)[^。]{0,10}(?:用户|用戶|使用者|任何人)",
        "не (?:говори|сообщай|рассказывай|упоминай)(?:те)?[^.]{0,40}пользовател",
        "ユーザー(?:に|には)[^。]{0,20}(?:言わない|伝えない|知らせない|教えない)",
        "(?:不要|别|請勿|请勿|切勿)让?[^。]{0,6}(?:用户|用戶|使用者)[^。]{0,6}(?:知道|看到|发现)",
        "사용자에게[^.]{0,20}(?:말하지|알리지)",
        "لا تخبر[^.]{0,20}المستخدم",
    )),
)  # fmt: skip

IN_OTHER_SCRIPTS = tuple((re.compile(any_of(*patterns)), what) for what, patterns in _OTHER_SCRIPT_ROWS)
