"""Word lists that tell sentences from code, for the normalisation of queries."""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


FUNCTION_WORDS = _words(
    "what how why when where which is are was were be been does did has have had can could will would should must",
    "the an of to than by from with equal equals many much",
    "calculate compute solve verify prove evaluate",
)
"""Words that are never a unit, function or constant; they are lower-cased next to numbers and formulas too."""

SENTENCE_OPENERS = _words(
    "what how why when where who whose is are was were does did can could will would should must",
    "the these those there calculate compute solve verify prove evaluate",
)
"""Words that begin no statement of a programming language and no common command."""

VERBS = _words("is are was were be been has have had does did can could will would should must equals")
MARKERS = _words("the a an of than these those")
"""Words that make a sentence together with a verb: expressions such as `result is None` have no article."""

OPERATOR_WORDS = _words("and or not xor implies iff in is as if else for from import")
"""Words between the names of an expression."""

CODE_WORDS = _words(
    "async await const def del elif enum esac goto lambda nonlocal readonly typeof unset var void",
    "apt awk bash cd chgrp chmod chown cp curl dd df docker du eval fdisk git grep gunzip gzip killall kubectl ln ls",
    "mkdir mkfs mv nc nohup npm pip pkill printf ps rm rmdir rsync scp sed sh ssh su sudo systemctl tar umount uniq",
    "unlink unzip wc wget xargs zsh",
)
"""Words of code and commands, next to which case matters: `rm Notes` is not `rm notes`."""

SQL_VERBS = _words(
    "alter analyze attach begin call commit copy create delete describe detach drop exec execute explain grant insert",
    "load lock merge pragma rename replace revoke rollback select set show truncate update upsert use vacuum values",
)
"""SQL commands, followed by table names that may be case-sensitive."""

CODE_OPENERS = (
    CODE_WORDS
    | SQL_VERBS
    | _words(
        "and as assert break case catch class continue default do done else except export extends fi final finally",
        "for from function global if implements import in interface let local match new not or package pass print",
        "private public raise return self static super switch then this throw try type until while with yield",
        "cat cmp cut dig diff echo env file find head kill less make man mount nice node open patch perl ping python",
        "read ruby run service shred sort source start stat stop tail tee test time touch tr trap zip",
    )
)
"""Words that may begin code or a command."""

SQL_WORDS = _words(
    "all and as asc between by case cross delete desc distinct else exists from group having in inner insert into is",
    "join left like limit not null on or order outer right select set then union update using values when where with",
)
"""Reserved words of SQL; none of them is a name unless it is quoted."""
